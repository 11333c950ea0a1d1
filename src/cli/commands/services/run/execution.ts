import { startExecutionProcess } from '../../../../processes/execution.ts'
import type { CliContext, ServiceFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

/** Runs until a signal, or until the source is silent for 30 s. */
export function execution(this: CliContext, flags: ServiceFlags): Promise<void> {
  return serveUntilSignal(this, flags, startExecutionProcess)
}
