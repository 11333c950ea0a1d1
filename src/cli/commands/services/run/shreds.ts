import { startShredsProcess } from '../../../../processes/shreds.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export function shreds(this: CliContext, flags: CommonFlags): Promise<void> {
  return serveUntilSignal(this, flags, startShredsProcess)
}
