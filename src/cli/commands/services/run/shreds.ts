import { startShredsProcess } from '../../../../processes/shreds.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

/** ShredStream Raw alone, until a signal ends it. */
export function shreds(this: CliContext, flags: CommonFlags): Promise<void> {
  return serveUntilSignal(this, flags, startShredsProcess)
}
