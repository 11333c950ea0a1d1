import { join } from 'node:path'
import { ServiceError } from '../../core/error.ts'
import { openControlClient } from '../../platform/process/control-client.ts'

/** Undefined where no process runs on the state folder, or one without this method. */
export async function askProcess(stateDir: string, method: string): Promise<unknown> {
  try {
    using client = await openControlClient(join(stateDir, 'control.sock'))
    return (await client.call(method)) ?? undefined
  } catch (error) {
    if (error instanceof ServiceError) return undefined
    throw error
  }
}
