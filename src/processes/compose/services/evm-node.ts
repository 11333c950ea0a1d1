import { ServiceError } from '../../../core/error.ts'
import type { ExecutionOptions } from '../../../execution/options.ts'
import { EvmNodeClient } from '../../../execution/source/evm-node/client.ts'
import { startEvmNodeWorker } from '../../../execution/source/evm-node/source-in-worker.ts'
import { isSecretRef, resolveSecret, type SecretSources } from '../../../platform/config/secret-ref.ts'
import { createJsonRpcClient } from '../../../platform/http/client/json-rpc.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'
import { systemClock } from '../../../platform/process/clock.ts'

type EvmNode = NonNullable<ExecutionOptions['node']>

export type EvmNodeDeps = BaseDeps &
  SecretSources & {
    /** `execution.ring`, which excludes a node. */
    readonly ring: string | undefined
  }

/** Writes the traces of the configured EVM node to a ring at `path`, in a thread. */
export async function startEvmNode(
  node: EvmNode,
  path: string,
  { log, clock, random, ring, ...secrets }: EvmNodeDeps,
): Promise<AsyncDisposable> {
  if (ring !== undefined) {
    throw new ServiceError('config-invalid', 'execution.ring and execution.node are both set', {
      fix: 'Set only one of them. A ring has execution durations, a node has none.',
    })
  }
  return await startEvmNodeWorker(
    { ...(await requestsTo(node, secrets)), path, pollMs: node.pollMs },
    { log, clock, random },
  )
}

/** Asks the node once. The error has neither its address nor its credential. */
export async function readEvmChainId(node: EvmNode, secrets: SecretSources): Promise<bigint> {
  const options = { ...(await requestsTo(node, secrets)), timeoutMs: 5000, responseBytesMax: 64 * 1024 }
  return await new EvmNodeClient(createJsonRpcClient(options), systemClock).chainId()
}

async function requestsTo(node: EvmNode, secrets: SecretSources) {
  const url = isSecretRef(node.rpc) ? (await resolveSecret(node.rpc, secrets)).reveal().trim() : node.rpc
  const credential = node.credential === undefined ? undefined : await resolveSecret(node.credential, secrets)
  return { url, headers: credential === undefined ? {} : { authorization: `Bearer ${credential.reveal().trim()}` } }
}
