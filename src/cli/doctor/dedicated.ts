import { isRemovedNode } from '../../access/provisioning/nodes.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { ServiceError } from '../../core/error.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { secureRandom } from '../../platform/process/random.ts'
import type { Config } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'
import { checkNode } from '../../upstreams/check-node.ts'
import { dedicatedSpec } from '../../upstreams/node-spec.ts'

const CHECK = 'dedicated node'

/** Whether each dedicated node responds on each of its endpoints, with its credential. */
export async function checkDedicated(
  store: Pick<AccessStore, 'list'>,
  { upstreams }: Config,
  sources: { readonly env: NodeJS.ProcessEnv; readonly folder: string },
): Promise<Finding[]> {
  const nodes = (await store.list('nodes'))
    .filter((node) => !isRemovedNode(node))
    .toSorted((a, b) => a.name.localeCompare(b.name))
  const deps = { clock: systemClock, random: secureRandom }
  const findings = await Promise.all(
    nodes.map(async (node): Promise<Finding[]> => {
      const fix = `sluice node test ${node.name}   # then correct its addresses or credential`
      try {
        const { servers } = await checkNode(await dedicatedSpec(node, upstreams, sources), upstreams, deps)
        const broken = servers.filter(({ isGood }) => !isGood)
        if (broken.length > 0)
          return broken.map(({ server, message }) => bad(CHECK, `${node.name} over ${server}: ${message}`, fix))
        return [ok(CHECK, `${node.name} responds over ${servers.map(({ server }) => server).join(', ')}`)]
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error
        return [bad(CHECK, `${node.name}: ${error.message}`, error.fix ?? fix)]
      }
    }),
  )
  return findings.flat()
}
