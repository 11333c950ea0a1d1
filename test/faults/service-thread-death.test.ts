import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/platform/process/test-wait.ts'
import { startSluice } from '../threats/whole-sluice.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
const PRELOAD = new URL('../support/process/end-thread-on-signal.ts', import.meta.url).href
const SERVICES = ['sender', 'indexer', 'execution'] as const
type Service = (typeof SERVICES)[number]
/** It is started again after 200 ms; a busy machine needs more to load its code and to open its database. */
const BACK_MS = 60_000

test('a thread of the sender, the indexer or the execution service that dies takes only its service with it, and comes back', async (t) => {
  const env = { NODE_OPTIONS: `--import=${PRELOAD}`, END_THREADS: SERVICES.join(' ') }
  await using sluice = await startSluice({ nodeMessage: 'not here', env })
  const { gateway, servers } = sluice
  const { running } = gateway
  const customer = await sluice.subscribe('acme-sql')
  const metrics = async () => (await fetch(`${servers.operator}/metrics`)).text()
  const json = { 'content-type': 'application/json' }
  let queries = { served: 0, lost: 0 }
  /** One request to each service; undefined where there is no response. */
  const requests: Record<Service | 'rpc', () => Promise<Response>> = {
    rpc: () => fetch(servers.rpc, { method: 'POST', headers: { ...json, 'x-token': customer.token }, body: CALL }),
    sender: () => fetch(`${servers.sender}/ping`),
    execution: () => fetch(`${servers.execution}/v1/status`),
    indexer: () => fetch(`${servers.indexer}/`, { method: 'POST', headers: customer.indexer, body: 'SELECT 1' }),
  }
  const statusOf = async (service: Service | 'rpc') => {
    const response = await requests[service]().catch(() => undefined)
    const text = await response?.text().catch(() => undefined)
    const status = text === undefined ? undefined : response?.status
    if (service === 'indexer') {
      if (status === 200) queries = { ...queries, served: queries.served + 1 }
      else queries = { ...queries, lost: queries.lost + 1 }
    }
    return status
  }
  const threadsOf = async () => {
    const { stdout } = await gateway.sluice('status', '--json')
    return (JSON.parse(stdout) as { threads: { name: string; isRunning: boolean; restarts: number }[] }).threads
  }
  for (const service of ['rpc', ...SERVICES] as const)
    await until(`${service} serves`, async () => (await statusOf(service)) === 200, BACK_MS)

  for (const [at, service] of SERVICES.entries()) {
    const others = (['rpc', ...SERVICES] as const).filter((other) => other !== service)
    const before = childrenOf(running.child.pid as number)
    running.child.kill('SIGUSR2')
    await running.line(new RegExp(`"thread":"${service}".*"msg":"thread ended, its connections are lost"`))
    const fromMs = performance.now()
    await until(
      `${service} is back`,
      async () => {
        for (const other of others) assert.equal(await statusOf(other), 200, `${other} while ${service} was away`)
        await pause(20)
        const isUp = new RegExp(`^sluice_thread_up\\{thread="${service}"\\} 1$`, 'm').test(await metrics())
        return isUp && (await statusOf(service)) === 200
      },
      BACK_MS,
    )
    t.diagnostic(`${service} was back after ${((performance.now() - fromMs) / 1000).toFixed(1)} s`)
    assert.match(await metrics(), new RegExp(`^sluice_thread_restarts_total\\{thread="${service}"\\} 1$`, 'm'))
    const threads = await threadsOf()
    assert.deepEqual(
      threads.filter(({ restarts }) => restarts > 0).map(({ name }) => name),
      SERVICES.slice(0, at + 1).toSorted((a, b) => indexIn(threads, a) - indexIn(threads, b)),
    )
    // The database process of the indexer has ended, and is no zombie; there is a new one.
    await until('no child of the dead thread is left', () => {
      const now = childrenOf(running.child.pid as number)
      return now.every(({ state }) => state !== 'Z') && now.length === before.length
    })
  }

  assert.equal(await running.stop(), 0)
  const { stdout } = await gateway.sluice('usage', '--sub', 'acme-sql', '--json')
  const rows = JSON.parse(stdout) as { interface: string; calls: number }[]
  const counted = rows.filter((row) => row.interface === 'indexer').reduce((sum, { calls }) => sum + calls, 0)
  t.diagnostic(`${counted} queries counted, ${queries.served} served, ${queries.lost} lost`)
  assert.ok(counted >= queries.served && counted <= queries.served + queries.lost, `${counted} counted`)
})

function indexIn(threads: readonly { name: string }[], name: string): number {
  return threads.findIndex((thread) => thread.name === name)
}

/** The child processes of a process, with their state. */
function childrenOf(parent: number): { pid: number; state: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const [state = '', ppid = ''] =
          readFileSync(`/proc/${name}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? []
        return Number(ppid) === parent ? [{ pid: Number(name), state }] : []
      } catch {
        return []
      }
    })
}
