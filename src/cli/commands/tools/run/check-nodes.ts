import { isRemovedNode } from '../../../../access/provisioning/nodes.ts'
import { ServiceError } from '../../../../core/error.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import type { Settings } from '../../../../processes/compose/config/settings.ts'
import { checkNode, type EndpointCheck, findPoolFaults, type NodeCheck } from '../../../../upstreams/check-node.ts'
import type { NodeSpec } from '../../../../upstreams/node.ts'
import { dedicatedSpec, sharedSpec } from '../../../../upstreams/node-spec.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { printList, write } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'

export async function checkUpstreams(this: CliContext, flags: ListFlags, name?: string): Promise<void> {
  const settings = await findSettings(this, flags)
  const { upstreams } = settings.config
  const nodes = upstreams.nodes.filter((node) => name === undefined || node.name === name)
  if (name !== undefined && nodes.length === 0) throw unknown(name, 'sluice config show')
  const sources = { env: this.process.env, folder: settings.loaded.folder }
  const specs = await Promise.all(nodes.map((node) => sharedSpec(node, upstreams, sources)))
  const checks = await checkAll(specs, settings)
  show(this, flags, checks, 'no upstream nodes are configured: the embedded chain is used')
  for (const { level, message } of findPoolFaults(checks, upstreams.health)) {
    write(this, `${level === 'bad' ? 'error' : 'warning'}: ${message}`)
    if (level === 'bad') this.process.exitCode = 1
  }
}

export async function checkNodes(this: CliContext, flags: ListFlags, name?: string): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const nodes = (await session.store.list('nodes'))
    .filter((node) => !isRemovedNode(node) && (name === undefined || node.name === name || node.id === name))
    .toSorted((a, b) => a.name.localeCompare(b.name))
  if (name !== undefined && nodes.length === 0) throw unknown(name, 'sluice node list')
  const sources = { env: this.process.env, folder: session.loaded.folder }
  const specs = await Promise.all(nodes.map((node) => dedicatedSpec(node, session.config.upstreams, sources)))
  const checks = await checkAll(specs, session)
  show(this, flags, checks, 'no dedicated nodes; add one with: sluice node add NAME --rpc URL')
}

function checkAll(specs: readonly NodeSpec[], { config }: Settings): Promise<NodeCheck[]> {
  const deps = { clock: systemClock, random: secureRandom }
  return Promise.all(specs.map((spec) => checkNode(spec, config.upstreams, deps)))
}

type Row = EndpointCheck & { readonly node: string }

function show(context: CliContext, flags: ListFlags, checks: readonly NodeCheck[], empty: string): void {
  const rows: Row[] = checks.flatMap(({ name, servers }) => servers.map((server) => ({ ...server, node: name })))
  printList(context, flags, {
    rows,
    empty,
    columns: [
      { title: 'NODE', value: (row) => row.node },
      { title: 'ENDPOINT', former: 'door', value: (row) => row.server },
      { title: 'OK', value: (row) => row.isGood, show: (row) => (row.isGood ? 'yes' : 'no') },
      { title: 'MS', wire: 'took_ms', value: (row) => row.tookMs },
      { title: 'RESULT', wire: 'message', former: 'says', value: (row) => row.message },
    ],
  })
  if (rows.some(({ isGood }) => !isGood)) context.process.exitCode = 1
}

function unknown(name: string, look: string): ServiceError {
  return new ServiceError('not-found', `unknown node "${name}"`, { fix: `List the nodes with: ${look}` })
}
