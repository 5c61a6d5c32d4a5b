import type { Levels } from "../types";

/** A longitude as it is nearest to another one: across the antimeridian it goes on beyond 180°. */
export function nearest(longitude: number, to: number): number {
  return longitude + 360 * Math.round((to - longitude) / 360);
}

/** West and east of an extent, as it is nearest to a longitude; east is never less. */
export function unwound([west, , east]: Levels["extent"], to: number): [west: number, east: number] {
  const width = east < west ? east + 360 - west : east - west;
  const start = nearest(west + width / 2, to) - width / 2;
  return [start, start + width];
}
