import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Logger } from '../telemetry/logger.ts'

/** What nearly every part of a process is given. */
export type BaseDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
}
