import { join, resolve } from 'node:path'
import { startRingWriterWorker } from '../../../localnet/ring/writer-in-worker.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import type { Settings } from '../config/settings.ts'
import type { Deps } from '../process/deps.ts'
import { startEvmNode } from './evm-node.ts'

/** The event ring that the execution service reads, with its writer if this process runs one. */
export type ExecutionRing = AsyncDisposable & {
  readonly path: string
  readonly kind: 'ring' | 'evm-node'
  /** Names of contracts, where they are known. */
  readonly names: ReadonlyMap<string, string>
}

/** The ring at `execution.ring`; or one written from the traces of `execution.node`; or that of the simulated EVM chain. */
export async function openExecutionRing(
  { config, loaded }: Pick<Settings, 'config' | 'loaded'>,
  { state, ...deps }: Deps & { readonly state: StateFolder },
): Promise<ExecutionRing> {
  const { ring, node } = config.execution
  const folder = await state.folder('ring')
  if (node !== undefined) {
    const path = join(folder, 'evm-node-events')
    const source = await startEvmNode(node, path, { ...deps, folder: loaded.folder, ring })
    return { path, kind: 'evm-node', names: new Map(), [Symbol.asyncDispose]: () => source[Symbol.asyncDispose]() }
  }
  if (ring !== undefined)
    return { path: resolve(loaded.folder, ring), kind: 'ring', names: new Map(), [Symbol.asyncDispose]: async () => {} }
  const path = join(folder, 'monad-exec-events')
  const writer = await startRingWriterWorker({ path, ...config.localnet.ring }, deps)
  return { path, kind: 'ring', names: writer.labels, [Symbol.asyncDispose]: () => writer[Symbol.asyncDispose]() }
}
