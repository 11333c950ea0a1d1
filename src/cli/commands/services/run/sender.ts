import { startSenderProcess } from '../../../../processes/sender.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

export function sender(this: CliContext, flags: CommonFlags): Promise<void> {
  return serveUntilSignal(this, flags, startSenderProcess)
}
