import { ServiceError } from '../../core/error.ts'
import { SET_ALLOW_PRIVATE } from '../../platform/net/pinned-address.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import type { Config } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok, warn } from '../../processes/compose/config/finding.ts'
import { findForbidden } from '../../processes/compose/config/forbidden-addresses.ts'
import { checkNode, findPoolFaults, type NodeCheck } from '../../upstreams/check-node.ts'
import { sharedSpec } from '../../upstreams/node-spec.ts'

/** Whether each node responds on each of its endpoints, and whether all are on the same chain, version and slot. */
export async function checkUpstreams(
  { upstreams }: Config,
  folder: string,
  env: NodeJS.ProcessEnv,
): Promise<Finding[]> {
  const deps = { clock: systemClock, random: secureRandom }
  const findings: Finding[] = []
  const checks = await Promise.all(
    upstreams.nodes.map(async (node): Promise<NodeCheck | undefined> => {
      try {
        return await checkNode(await sharedSpec(node, upstreams, { env, folder }), upstreams, deps)
      } catch (error) {
        // The check of secrets reports an unreadable credential.
        if (error instanceof ServiceError) return undefined
        throw error
      }
    }),
  )
  const known = checks.filter((check) => check !== undefined)
  for (const { name, servers } of known) {
    const broken = servers.filter(({ isGood }) => !isGood)
    for (const { server, message } of broken)
      findings.push(
        bad(
          'upstream',
          `${name} over ${server}: ${message}`,
          message.endsWith(SET_ALLOW_PRIVATE) ? ALLOW_PRIVATE_FIX : testFix(name),
        ),
      )
    if (broken.length === 0)
      findings.push(
        ok('upstream', `${name} responds over ${servers.map(({ server: endpoint }) => endpoint).join(', ')}`),
      )
  }
  const faults = findPoolFaults(known, upstreams.health)
  const fix = 'remove the node that differs from upstreams.nodes, or update it'
  for (const { level, message: reason } of faults)
    findings.push(level === 'bad' ? bad('pool', reason, fix) : warn('pool', reason, fix))
  const silent = upstreams.nodes.filter(({ name }) => !known.some((check) => check.name === name && isCompared(check)))
  if (silent.length > 0 && upstreams.nodes.length > 1) {
    const names = silent.map(({ name }) => name).join(', ')
    const message = `${upstreams.nodes.length - silent.length} of ${upstreams.nodes.length} nodes can serve calls; not compared: ${names}`
    findings.push(
      warn(
        'pool',
        message,
        `sluice upstream test ${silent[0]?.name}   # then repair it, or remove it from upstreams.nodes`,
      ),
    )
  } else if (faults.length === 0 && known.length > 1)
    findings.push(ok('pool', 'all nodes are on the same chain, version and slot'))
  return findings
}

const testFix = (name: string) => `sluice upstream test ${name}   # then correct its addresses or credential`
const ALLOW_PRIVATE_FIX =
  'set allowPrivate = true in the table of this node, or upstreams.allowPrivate = true for all nodes'

/** The addresses of nodes that are forbidden as they are written. Names are resolved, and secret addresses read, when a node is tested. */
export function checkNodeAddresses({ upstreams }: Config): Finding[] {
  return upstreams.nodes.flatMap((node) =>
    findForbidden(node, node.allowPrivate ?? upstreams.allowPrivate).map(({ server, message, isOnlyPrivate }) => {
      const fix = isOnlyPrivate ? ALLOW_PRIVATE_FIX : `correct ${server} of the node ${node.name}`
      return bad('upstream', `node ${node.name}, ${server}: ${message}`, fix)
    }),
  )
}

/** Whether the node reported what the nodes of a pool have in common. A node without JSON-RPC has nothing to compare. */
function isCompared({ servers, genesis, slot }: NodeCheck): boolean {
  const hasRpc = servers.some(({ server }) => server === 'rpc')
  return servers.every(({ isGood }) => isGood) && (!hasRpc || (genesis !== undefined && slot !== undefined))
}
