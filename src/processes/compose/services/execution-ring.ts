import { join, resolve } from 'node:path'
import { ServiceError } from '../../../core/error.ts'
import { startRingWriterWorker } from '../../../localnet/ring/writer-in-worker.ts'
import { EXECUTION_OFF, executionSource } from '../config/served.ts'
import type { ServiceContext, ServiceSettings } from '../process/service-context.ts'
import { startEvmNode } from './evm-node.ts'

/** The event ring that the execution service reads, with its writer if this process runs one. */
export type ExecutionRing = AsyncDisposable & {
  readonly path: string
  readonly kind: 'ring' | 'evm-node'
  /** The data is made up. */
  readonly isSimulated: boolean
  /** Names of contracts, where they are known. */
  readonly names: ReadonlyMap<string, string>
}

const REAL = { isSimulated: false, names: new Map<string, string>() }

/** The ring at `execution.ring`; or one written from the traces of `execution.node`; or that of the simulated EVM chain. */
export async function openExecutionRing(
  { config, loaded }: ServiceSettings,
  { state, ...deps }: ServiceContext<never>,
): Promise<ExecutionRing> {
  const { ring, node } = config.execution
  const folder = await state.folder('ring')
  if (node !== undefined) {
    const path = join(folder, 'evm-node-events')
    const source = await startEvmNode(node, path, { ...deps, folder: loaded.folder, ring })
    return { path, kind: 'evm-node', ...REAL, [Symbol.asyncDispose]: () => source[Symbol.asyncDispose]() }
  }
  if (ring !== undefined)
    return { path: resolve(loaded.folder, ring), kind: 'ring', ...REAL, [Symbol.asyncDispose]: async () => {} }
  if (executionSource(config) === undefined)
    throw new ServiceError('config-invalid', `the execution service has ${EXECUTION_OFF}`, {
      fix: 'Set one of these keys: real nodes are configured, so simulated data is served only on request.',
    })
  const path = join(folder, 'monad-exec-events')
  const writer = await startRingWriterWorker({ path, ...config.localnet.ring }, deps)
  const end = () => writer[Symbol.asyncDispose]()
  return { path, kind: 'ring', isSimulated: true, names: writer.labels, [Symbol.asyncDispose]: end }
}
