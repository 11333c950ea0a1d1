import type { Token } from '../../../../access/store/model.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { printTime } from '../../../dates.ts'

/** The state of a token for people: the record of one whose grace has passed stays `retiring`, but its calls are refused as expired. */
export function printTokenState({ state, notAfter }: Pick<Token, 'state' | 'notAfter'>, isWithTime = false): string {
  if (state !== 'retiring' || notAfter === null) return state
  const shown = notAfter > systemClock.nowMs() ? 'retiring' : 'expired'
  if (!isWithTime) return shown
  return `${shown}, ${shown === 'retiring' ? 'works until' : 'since'} ${printTime(notAfter)} UTC`
}
