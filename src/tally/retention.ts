/*
 * How long each kind of window is kept. Weeks stay for ever: they are few, and the totals are their sum.
 */
import type { WindowKind } from '../core/windows.js'

const dayMs = 86_400_000

export const retentionMs: Readonly<Record<WindowKind, number>> = {
  minute: 2 * dayMs,
  hour: 90 * dayMs,
  day: 3 * 365 * dayMs,
  week: Infinity,
}
