import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { z } from 'zod'
import { ADMIN_ROUTES, type AdminRoute } from '../src/contract/admin-routes.ts'
import { ADMIN_REPLIES } from '../src/contract/schemas/admin-replies.ts'
import { readFences } from './markdown.ts'
import { compile, OPERATIONS, writeAdminClient } from './support/admin/client.ts'
import { BARE_ENV, CLI, sluice, temporaryFolder } from './support/cli/run.ts'
import { type Served, serve } from './support/process/serve.ts'

const run = promisify(execFile)
const REPLIES: { readonly [id: string]: z.ZodType } = ADMIN_REPLIES
const DOCUMENT = join(import.meta.dirname, '../docs/admin-api.md')

/** The life of a customer. The lines with a mistake show that the compiler knows the types. */
const LIFE = `
import { call } from './client.ts'

// @ts-expect-error a member that the body does not have
const mistake = () => call('customerAdd', { body: { nmae: 'x' } })
// @ts-expect-error a route that does not exist
const missing = () => call('customerDelete')
// @ts-expect-error a field of another type
const field = async (): Promise<number> => (await call('customerShow', { path: { customer: 'x' } })).name

const seen: Record<string, unknown> = {}
const customer = await call('customerAdd', { body: { name: 'globex', contact: 'ops@globex.example' } })
seen.customerAdd = customer
const path = { subscription: 'globex-main' }
const products: ('bundle' | 'shreds-raw' | 'dedicated-node')[] = ['bundle', 'shreds-raw', 'dedicated-node']
const created = await call('subCreate', { body: { name: path.subscription, customer: customer.id, plan: 'build', products } })
const card: string | undefined = created.card
if (card === undefined || created.token === undefined) throw new Error('no card or token')
seen.subCreate = created
seen.customerChange = await call('customerChange', { path: { customer: 'globex' }, body: { contact: 'noc@globex.example' } })
seen.subLimit = await call('subLimit', { path, body: { limits: { units_per_second: 120 } } })
seen.tokenRotate = await call('tokenRotate', { path, body: { grace: '1h' } })
seen.noteAdd = await call('noteAdd', { body: { subject: 'globex', text: 'pays by invoice' } })
seen.refundAdd = await call('refundAdd', { path, body: { amount: '12.50', currency: 'USD', reason: 'outage' } })
seen.subSuspend = await call('subSuspend', { path })
seen.subResume = await call('subResume', { path })
seen.subRenew = await call('subRenew', { path, body: { until: '90d' } })
seen.destinationSet = await call('destinationSet', { path, body: { address: '8.8.8.8:20001' } })
seen.destinationPause = await call('destinationPause', { path })
seen.nodeAdd = await call('nodeAdd', { body: { name: 'big', rpc: 'http://8.8.8.8:8899' } })
seen.nodeAssign = await call('nodeAssign', { path: { node: 'big' }, body: { subscription: path.subscription } })
seen.nodeRemove = await call('nodeRemove', { path: { node: 'big' }, query: { force: 'true' } })
seen.adminAdd = await call('adminAdd', { body: { name: 'bob', role: 'billing' } })
const page = await call('subList', { query: { search: 'globex', limit: '1' } })
const state: 'active' | 'suspended' | 'cancelled' | 'expired' | 'customer-suspended' | undefined = page.items[0]?.state
if (state !== 'active') throw new Error(String(state))
process.stdout.write(JSON.stringify(seen))
`

/** What the names in the path of a GET route stand for. */
const PARAMS: Readonly<Record<string, string>> = { customer: 'globex', subscription: 'globex-main', plan: 'build' }
const QUERIES: Readonly<Record<string, string>> = {
  usageExport: 'month=2026-10',
  invoicePreview: 'month=2026-10',
  shredReport: 'since=24h&by=day',
  usage: 'by=day&customer=globex',
  audit: 'subject=globex-main&limit=5',
}
/** Services that this process does not run. */
const OFF: Readonly<Record<string, number>> = { indexerStatus: 404, senderStats: 404 }

describe('the admin API of sluice serve', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let running: Served
  let url: string
  before(async () => {
    home = await temporaryFolder()
    running = serve({ cwd: home.path, env: { SLUICE_SENDER__ENABLED: 'false' } })
    await running.line(/"msg":"started"/)
    url = `http://${await running.address('admin')}`
  })
  after(async () => {
    await running[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  async function tokenOf(name: string): Promise<string> {
    const { code, stderr } = await sluice(
      ['admin', 'add', name, '--role', 'owner', '--out', home.file(`${name}.tok`)],
      {
        cwd: home.path,
      },
    )
    assert.equal(code, 0, stderr)
    return readFileSync(home.file(`${name}.tok`), 'utf8').trim()
  }

  test('the examples of docs/admin-api.md work as they are written', async () => {
    const bin = home.file('bin')
    mkdirSync(bin)
    const launcher = join(bin, 'sluice')
    writeFileSync(
      launcher,
      `#!/bin/sh\nexec "${process.execPath}" --disable-warning=ExperimentalWarning "${CLI}" "$@"\n`,
    )
    chmodSync(launcher, 0o755)
    const examples = readFences(readFileSync(DOCUMENT, 'utf8')).filter(({ info }) => info === 'sh')
    assert.ok(examples.length >= 2)
    const script = examples.map(({ text }) => text.replaceAll('http://127.0.0.1:9470', url)).join('\n')
    const env = { ...BARE_ENV, XDG_RUNTIME_DIR: '/dev/null', PATH: `${bin}:${BARE_ENV.PATH}` }
    const { stdout } = await run('bash', ['-e', '-c', script], { cwd: home.path, env })
    assert.match(stdout, /"role":"owner"/)
    assert.match(stdout, /"state":"removed"/)
    const created = JSON.parse(readFileSync(home.file('acme-main.json'), 'utf8')) as { token: string; card: string }
    assert.match(created.token, /^slc_/)
    assert.ok(created.card.includes(created.token))
    assert.ok(!running.stdout().includes(created.token))
  })

  test('the token of an administrator is refused on the RPC listener and is in no log', async () => {
    const token = await tokenOf('wrong-listener')
    assert.match(token, /^sla_/)
    const rpc = `http://${await running.address('rpc')}`
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getSlot' })
    const type = { 'content-type': 'application/json' }
    const places: [string, Record<string, string>][] = [
      [rpc, { authorization: `Bearer ${token}` }],
      [rpc, { 'x-token': token }],
      [`${rpc}/?api-key=${token}`, {}],
      [`${rpc}/${token}`, {}],
    ]
    for (const [at, headers] of places) {
      const response = await fetch(at, { method: 'POST', headers: { ...type, ...headers }, body })
      assert.ok([401, 403, 404].includes(response.status), `${response.status}`)
      assert.ok(!(await response.text()).includes(token))
    }
    assert.equal((await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${token}` } })).status, 200)
    assert.ok(!running.stdout().includes(token) && !running.stderr().includes(token))
  })

  test('an error links the page of the documents about it, and only where there is one', async () => {
    const headers = { authorization: `Bearer ${await tokenOf('reader')}` }
    const errorAt = async (path: string, sent: Record<string, string>) =>
      ((await (await fetch(`${url}${path}`, { headers: sent })).json()) as { error: { docs_url?: string } }).error
    const { docs_url: page } = await errorAt('/v1/customers/nobody', headers)
    const response = await fetch(page ?? '')
    assert.equal(response.status, 200)
    assert.match(await response.text(), /not-found/)
    assert.equal((await errorAt('/v1/me', {})).docs_url, undefined, 'the page of unauthorized is for customers')
  })

  test('a client generated from docs/openapi/admin.json compiles and serves a customer; every GET responds as described', async () => {
    const token = await tokenOf('client')
    await using folder = await temporaryFolder()
    writeAdminClient(folder.path, LIFE)
    assert.equal(compile(folder.path), '')
    const env = { ...BARE_ENV, ADMIN_URL: url, ADMIN_TOKEN: token }
    const { stdout } = await run(process.execPath, [folder.file('program.ts')], { env })
    const seen = JSON.parse(stdout) as Record<string, unknown>
    assert.ok(Object.keys(seen).length >= 15)
    for (const [id, reply] of Object.entries(seen)) check(id, reply)

    const routes = Object.entries(ADMIN_ROUTES as Readonly<Record<string, AdminRoute>>)
    assert.deepEqual(
      routes.map(([id]) => id).filter((id) => !OPERATIONS.some((operation) => operation.id === id)),
      [],
    )
    for (const [id, { method, path }] of routes) {
      if (method !== 'GET') continue
      const at = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => PARAMS[name] ?? assert.fail(name))
      const response = await fetch(`${url}${at}?${QUERIES[id] ?? ''}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const text = await response.text()
      // Invoices need prices, which this process may not have.
      if (id === 'invoicePreview' && response.status === 501) continue
      assert.equal(response.status, OFF[id] ?? 200, `${id}: ${text.slice(0, 300)}`)
      if (response.status === 200 && REPLIES[id] !== undefined) check(id, JSON.parse(text))
    }
  })
})

function check(id: string, reply: unknown): void {
  const read = (REPLIES[id] ?? assert.fail(`${id} has no schema`)).safeParse(reply)
  assert.ok(read.success, `${id}: ${read.error?.message}\n${JSON.stringify(reply).slice(0, 600)}`)
}
