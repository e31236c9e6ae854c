/*
 * Colours as Grafana takes them: steps for a figure that turns from good to bad, and fixed
 * colours for series whose meaning is known. Which colour means what is decided in `config.ts`.
 */
import type { Builder } from '@grafana/grafana-foundation-sdk/cog'
import {
  type DynamicConfigValue,
  FieldColorBuilder,
  FieldColorModeId,
  type FieldColor,
  type Threshold,
  type ThresholdsConfig,
  ThresholdsConfigBuilder,
  ThresholdsMode,
} from '@grafana/grafana-foundation-sdk/dashboard'

/** `steps` are the values from which a colour holds; `base` is the colour below all of them. */
export function steps(
  base: string,
  ...above: readonly (readonly [number, string])[]
): Builder<ThresholdsConfig> {
  const rest = above.map(([value, color]): Threshold => ({ value, color }))
  return new ThresholdsConfigBuilder()
    .mode(ThresholdsMode.Absolute)
    .steps([{ value: null, color: base }, ...rest])
}

/** The colour follows the steps. */
export function byThresholds(): Builder<FieldColor> {
  return new FieldColorBuilder().mode(FieldColorModeId.Thresholds)
}

/** One colour for the whole panel. */
export function one(colour: string): Builder<FieldColor> {
  return new FieldColorBuilder().mode(FieldColorModeId.Fixed).fixedColor(colour)
}

/**
 * For an override: shades of one colour, for series of one meaning that only their instance tells
 * apart.
 */
export function shadesOf(colour: string): DynamicConfigValue[] {
  return [{ id: 'color', value: { mode: FieldColorModeId.Shades, fixedColor: colour } }]
}

/** Any colours that tell series apart. */
export function palette(): Builder<FieldColor> {
  return new FieldColorBuilder().mode(FieldColorModeId.PaletteClassicByName)
}

/** For an override: this colour whatever the value. */
export function always(colour: string): DynamicConfigValue[] {
  return [{ id: 'color', value: { mode: FieldColorModeId.Fixed, fixedColor: colour } }]
}

/** For an override: neutral at 0, this colour from `value` on. */
export function from(value: number, colour: string, base: string): DynamicConfigValue[] {
  return [
    { id: 'color', value: { mode: FieldColorModeId.Thresholds } },
    { id: 'thresholds', value: steps(base, [value, colour]).build() },
  ]
}
