import { startShredsProcess } from '../../../../processes/shreds.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export function shreds(this: CliContext, flags: ServiceFlags): Promise<void> {
  return serveUntilSignal(this, flags, startShredsProcess)
}
