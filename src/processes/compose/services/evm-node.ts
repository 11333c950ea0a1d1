import { ServiceError } from '../../../core/error.ts'
import type { ExecutionOptions } from '../../../execution/options.ts'
import { startEvmNodeWorker } from '../../../execution/source/evm-node/source-in-worker.ts'
import { isSecretRef, resolveSecret, type SecretSources } from '../../../platform/config/secret-ref.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'

export type EvmNodeDeps = BaseDeps &
  SecretSources & {
    /** `execution.ring`, which excludes a node. */
    readonly ring: string | undefined
  }

/** Writes the traces of the configured EVM node to a ring at `path`, in a thread. */
export async function startEvmNode(
  node: NonNullable<ExecutionOptions['node']>,
  path: string,
  { log, clock, random, ring, ...secrets }: EvmNodeDeps,
): Promise<AsyncDisposable> {
  if (ring !== undefined) {
    throw new ServiceError('config-invalid', 'execution.ring and execution.node are both set', {
      fix: 'Set only one of them. A ring has execution durations, a node has none.',
    })
  }
  const url = isSecretRef(node.rpc) ? (await resolveSecret(node.rpc, secrets)).reveal().trim() : node.rpc
  const credential = node.credential === undefined ? undefined : await resolveSecret(node.credential, secrets)
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential.reveal().trim()}` }
  return await startEvmNodeWorker({ url, headers, path, pollMs: node.pollMs }, { log, clock, random })
}
