import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import type { Localnet } from '../../src/localnet/service.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts'
import { readFences } from '../markdown.ts'
import { BARE_ENV } from '../support/cli/run.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { startChromium } from '../support/machine/chromium.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

const ROOT = join(import.meta.dirname, '../..')
const BROWSER_LINE = 'npx node examples/browser/server.mjs'
/** An example that does not exit by itself is killed after this time. */
const RUNS_MS_MAX = 60_000
const lines = readFences(readFileSync(join(ROOT, 'examples/README.md'), 'utf8'))
  .filter(({ info }) => info === 'sh run')
  .map(({ text }) => text.trim())

/** The programs of `examples/`, unmodified, by the lines of its README. */
describe('the examples, through the gateway with a token', () => {
  let node: Localnet
  let gateway: Gateway
  let way: FaultProxy
  let env: Record<string, string>

  before(async () => {
    node = await startQuickLocalnet()
    const at = (kind: 'rpc' | 'ws' | 'grpc') => `127.0.0.1:${node[kind].port}`
    // Tickets contain the address of a proxy, so that the test can interrupt the connection of a page.
    const target = { host: '127.0.0.1', port: 0 }
    way = await startFaultProxy({ target })
    gateway = await startGateway(
      [{ name: 'localnet', rpc: `http://${at('rpc')}`, ws: `ws://${at('ws')}`, grpc: `http://${at('grpc')}` }],
      BUILT_IN_PLANS,
      {
        wsUrl(port) {
          target.port = port
          return `ws://127.0.0.1:${way.port}`
        },
      },
    )
    const { token } = await gateway.subscribe({})
    env = { SLUICE_RPC: gateway.url, SLUICE_GRPC: `http://${gateway.grpc}`, SLUICE_TOKEN: token, PORT: '0' }
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await way[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  /** Runs one line as a reader would, in its own process group, so that a signal reaches the processes npx started. */
  function run(line: string, given = env) {
    const child = spawn('sh', ['-c', line], {
      cwd: ROOT,
      env: { ...BARE_ENV, ...given },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    const message = { out: '', err: '' }
    child.stdout.on('data', (chunk: Buffer) => (message.out += chunk.toString()))
    child.stderr.on('data', (chunk: Buffer) => (message.err += chunk.toString()))
    const ended = once(child, 'close') as Promise<[number | null]>
    const end = () => {
      if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    }
    const timer = setTimeout(end, RUNS_MS_MAX)
    void ended.then(() => clearTimeout(timer))
    return {
      printed: message,
      ended,
      async [Symbol.asyncDispose]() {
        end()
        await ended
      },
    }
  }

  it('every program is documented, and every documented program exists', () => {
    const programs = globSync(['examples/*.mjs', 'examples/browser/*.mjs'], { cwd: ROOT })
    const parts = ['examples/settings.mjs', 'examples/ticket.mjs']
    assert.deepEqual(
      programs.filter((path) => !parts.includes(path) && !lines.includes(`npx node ${path}`)),
      [],
    )
    assert.equal(lines.length, programs.length - parts.length + 1)
  })

  for (const line of lines.filter((each) => each.startsWith('npx') && each !== BROWSER_LINE)) {
    it(`${line}: receives slots`, async () => {
      await using running = run(line)
      const [code] = await running.ended
      assert.equal(code, 0, running.printed.out + running.printed.err)
      const reported = running.printed.out.trim().split('\n')
      const slots = reported.filter((text) => /^slot \d+n? (root|parent) \d+n?$/.test(text))
      // Programs end at the third; where a slot has several banks, another one may arrive with it.
      assert.ok(slots.length >= 3, running.printed.out)
    })
  }

  it('without a valid token an example exits with the reason', async () => {
    await using running = run('npx node examples/kit.mjs', { ...env, SLUICE_TOKEN: `${env['SLUICE_TOKEN']}x` })
    const [code] = await running.ended
    assert.notEqual(code, 0)
    assert.match(running.printed.err, /401/)
    assert.doesNotMatch(running.printed.out + running.printed.err, /slc_/)
  })

  it('curl gets a ticket', async () => {
    await using running = run(lines.find((line) => line.startsWith('curl')) ?? 'false')
    await running.ended
    const { ticket, expires_at, url } = JSON.parse(running.printed.out) as Record<string, string>
    assert.match(ticket ?? '', /^wst_/)
    assert.ok(Date.parse(expires_at ?? '') > Date.now())
    assert.equal(url, `ws://127.0.0.1:${way.port}/?ticket=${ticket}`)
  })

  it('a page in Chromium connects with a ticket, never sees the token, and reconnects after a loss', async () => {
    await using running = run(lines.find((line) => line === BROWSER_LINE) ?? 'false')
    await until('it listens', () => running.printed.out.includes('open http'), 60_000)
    const address = /http:\S+/.exec(running.printed.out)?.[0] ?? ''
    await using browser = await startChromium()
    const { page, errors } = await browser.open(address)
    const seen: string[] = []
    page.on('websocket', (socket) => seen.push(socket.url()))
    await page.reload()
    await page.waitForSelector('#slots li:nth-child(3)')
    const slots = await page.$$eval('#slots li', (items) => items.map((item) => item.textContent))
    for (const text of slots) assert.match(text, /^slot \d+, root \d+$/)
    assert.equal(await page.textContent('#state'), 'connected')

    const before = seen.length
    way.resetConnections()
    await until('it is back', async () => seen.length > before && (await page.textContent('#state')) === 'connected')
    await page.$eval('#slots', (list) => list.replaceChildren())
    await page.waitForSelector('#slots li:nth-child(2)')

    assert.ok(seen.every((url) => url.startsWith(`ws://127.0.0.1:${way.port}/?ticket=wst_`)))
    assert.ok(!seen.join().includes('slc_') && !(await page.content()).includes('slc_'))
    assert.deepEqual(errors, [])
  })
})
