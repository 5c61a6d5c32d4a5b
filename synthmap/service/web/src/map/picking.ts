import { LayerExtension } from "@deck.gl/core";

/**
 * Lets the pointer tell flows apart.
 *
 * flowmap.gl's shaders read colours for this that deck.gl since 9.4 does not give them: it counts what is drawn instead.
 */
export class Counted extends LayerExtension {
  static override extensionName = "Counted";

  override getShaders(): { inject: Record<string, string> } {
    return { inject: { "vs:#main-end": "picking_setPickingColorFromInstanceID();" } };
  }
}
