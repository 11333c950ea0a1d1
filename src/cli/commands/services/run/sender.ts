import { startSenderProcess } from '../../../../processes/sender.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export function sender(this: CliContext, flags: ServiceFlags): Promise<void> {
  return serveUntilSignal(this, flags, startSenderProcess)
}
