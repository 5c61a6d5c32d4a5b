// What the service answers, as far as the page reads it.
import type { Geometry } from "geojson";

export interface Link {
  rel: string;
  type: string;
  title: string;
  href: string;
}

export interface Release {
  id: string;
  status: "available" | "damaged";
  fault?: string;
  title: string;
  year: number | null;
  created: string;
  epsilon: number;
  delta: number;
  private: boolean;
  warning: string | null;
  workers: number;
  destinations: number;
  zones: number;
  vintage: string;
  levels: string[];
  segments: string[];
}

export interface Levels {
  levels: { id: string; units: number }[];
  extent: [number, number, number, number];
}

export interface PageSettings {
  version: string;
  anonymous: boolean;
  tiles: string | null;
  attribution: string;
  /** Bytes of an upload at most. */
  upload_bytes: number;
  /** Metres around an area at most. */
  farthest_m: number;
}

export type Trust = "exact" | "signal" | "weak" | "noise";

export interface Figure {
  workers: number;
  expected_error: number;
  trust: Trust;
}

export interface Row extends Figure {
  segments: Record<string, Figure>;
  figure?: string;
  label?: string;
  group?: string;
  direction?: string;
  from?: number | null;
  to?: number | null;
  share?: number;
  rank?: number;
  id?: string;
  longitude?: number | null;
  latitude?: number | null;
  within_noise?: boolean;
  before?: Figure;
  after?: Figure;
}

export interface AnalysedArea {
  name: string;
  end: string | null;
  description: string;
  rule: string;
  zones: number;
  bbox: [number, number, number, number] | null;
  geometry: Geometry | null;
  notes: string[];
}

export interface Analysis {
  release: string;
  title: string;
  citation: string;
  analysis: string;
  analysis_title: string;
  parameters: Record<string, unknown>;
  areas: AnalysedArea[];
  segments: string[];
  warnings: string[];
  expected_error: string;
  rows: Row[];
}
