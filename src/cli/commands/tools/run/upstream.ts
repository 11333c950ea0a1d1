import { ServiceError } from '../../../../core/error.ts'
import type { CliContext, CommonFlags, ListFlags } from '../../../define.ts'
import { openRunningProcess } from '../../../operations/running-process.ts'
import { printJson, printList, write } from '../../../output/print.ts'

export async function listUpstreams(this: CliContext, flags: ListFlags): Promise<void> {
  using client = await openRunningProcess(this, flags)
  printList(this, flags, {
    rows: await client.call('upstreams'),
    empty: 'no upstream nodes; add them under [[upstreams.nodes]] in the config',
    columns: [
      { title: 'NAME', value: (row) => row.name },
      { title: 'STATE', value: (row) => row.state },
      { title: 'SLOT', value: (row) => row.slot },
      { title: 'LAG', wire: 'lag_slots', value: (row) => row.lagSlots },
      { title: 'MS', wire: 'latency_ms', value: (row) => row.latencyMs },
      { title: 'CALLS', wire: 'recent_calls', value: (row) => row.recentCalls },
      { title: 'FAILED', wire: 'recent_failures', value: (row) => row.recentFailures },
      { title: 'STREAMS', wire: 'grpc_streams', value: (row) => row.grpcStreams },
      { title: 'OWNER', value: (row) => row.owner, wide: true },
      { title: 'BREAKER', value: (row) => row.breaker, wide: true },
      { title: 'REASON', value: (row) => row.reason },
    ],
  })
}

export async function drainUpstream(this: CliContext, flags: CommonFlags, name: string): Promise<void> {
  await order(this, flags, 'upstream-drain', name, 'is drained in this process until it ends: no new requests')
}

export async function undrainUpstream(this: CliContext, flags: CommonFlags, name: string): Promise<void> {
  await order(this, flags, 'upstream-undrain', name, 'is in use again')
}

async function order(
  context: CliContext,
  flags: CommonFlags,
  method: 'upstream-drain' | 'upstream-undrain',
  name: string,
  words: string,
): Promise<void> {
  using client = await openRunningProcess(context, flags)
  const { found } = await client.call(method, { name })
  if (!found) {
    throw new ServiceError('not-found', `unknown upstream node "${name}"`, {
      fix: 'List them with: sluice upstream list',
    })
  }
  if (flags.json === true) printJson(context, { upstream: name, done: true })
  else write(context, `upstream ${name} ${words}`)
}
