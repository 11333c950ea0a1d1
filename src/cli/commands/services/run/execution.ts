import { startExecutionProcess } from '../../../../processes/execution.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { serveUntilSignal } from './serve-until-signal.ts'

/** The execution service alone, until a signal ends it or its source falls silent. */
export function execution(this: CliContext, flags: CommonFlags): Promise<void> {
  return serveUntilSignal(this, flags, startExecutionProcess)
}
