import type { Clock } from '../../../core/clock.ts'
import { ServiceError } from '../../../core/error.ts'
import type { Random } from '../../../core/random.ts'
import type { ExecutionOptions } from '../../../execution/options.ts'
import { type EvmNodeSource, startEvmNodeSource } from '../../../execution/source/evm-node/source.ts'
import { isSecretRef, resolveSecret, type SecretSources } from '../../../platform/config/secret-ref.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'

export type EvmNodeDeps = SecretSources & {
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
  /** The ring of the configuration; there can be only one source. */
  readonly ring: string | undefined
}

/** The EVM node of the configuration, written to a ring of its own at the path. */
export async function startEvmNode(
  node: NonNullable<ExecutionOptions['node']>,
  path: string,
  { log, clock, random, ring, ...secrets }: EvmNodeDeps,
): Promise<EvmNodeSource> {
  if (ring !== undefined) {
    throw new ServiceError('config-invalid', 'execution.ring and execution.node are both set', {
      fix: 'Give one of the two: a ring has durations, a node has none.',
    })
  }
  const url = isSecretRef(node.rpc) ? (await resolveSecret(node.rpc, secrets)).reveal().trim() : node.rpc
  const credential = node.credential === undefined ? undefined : await resolveSecret(node.credential, secrets)
  const headers = credential === undefined ? {} : { authorization: `Bearer ${credential.reveal().trim()}` }
  return await startEvmNodeSource({ url, headers, path, pollMs: node.pollMs }, { log, clock, random })
}
