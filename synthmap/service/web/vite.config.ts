import { defineConfig } from "vite";

// The page is served at <prefix>/map and its files at <prefix>/map/<name>: addresses relative to the page suit both.
export default defineConfig({
  base: "./",
  build: {
    assetsDir: "map",
    assetsInlineLimit: 0, // the page's policy allows no code and no style inside it
    chunkSizeWarningLimit: 1500,
    license: { fileName: "map/licenses.md" },
    modulePreload: { polyfill: false },
    target: "es2022",
  },
});
