import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ADMIN_ROUTES, type AdminRoute, type AdminRouteId } from '../src/contract/admin-routes.ts'
import { LOCAL_COMMANDS, LOCAL_FLAGS } from '../src/contract/local-commands.ts'
import { type CallInput, openHandlers } from './support/admin/handlers.ts'
import { createMask, lastLine, recordsOf, STEPS, withStore } from './support/admin/steps.ts'
import { COMMANDS } from './support/cli/commands.ts'
import { sluiceHere } from './support/cli/in-process.ts'

const ROUTES: readonly [AdminRouteId, AdminRoute][] = Object.entries(ADMIN_ROUTES) as [AdminRouteId, AdminRoute][]

test('every command has a route of the admin API, or a reason to stay local', () => {
  const routed = new Set(ROUTES.flatMap(([, { commands = [] }]) => commands))
  const names = COMMANDS.map(({ path }) => path.join(' '))
  assert.deepEqual(
    names.filter((name) => !routed.has(name) && LOCAL_COMMANDS[name] === undefined),
    [],
    'add a route to src/contract/admin-routes.ts, or a reason to src/contract/local-commands.ts',
  )
  assert.deepEqual(
    Object.keys(LOCAL_COMMANDS).filter((name) => routed.has(name) || !names.includes(name)),
    [],
    'the reason of a command that has a route or does not exist',
  )
})

test('docs/admin-api.md lists the commands without a route, with the same reasons', () => {
  const text = readFileSync(join(import.meta.dirname, '../docs/admin-api.md'), 'utf8')
  const listed = [...text.matchAll(/^\| `sluice ([^`]+)` \| (.+) \|$/gm)].map(([, name, because]) => [name, because])
  assert.deepEqual(listed, Object.entries({ ...LOCAL_COMMANDS, ...LOCAL_FLAGS }))
})

/** Changes without a record in the store, or of another part of the service. */
const NOT_STORED: readonly AdminRouteId[] = [
  'noticeTest',
  'upstreamDrain',
  'upstreamUndrain',
  'connectionClose',
  'adminAdd',
  'adminRotate',
  'adminRemove',
]

describe('a changing command and its route', () => {
  test('all changing routes are compared', () => {
    const compared = new Set<string>(STEPS.map(({ id }) => id))
    const missing = ROUTES.filter(
      ([id, { method }]) => method !== 'GET' && !compared.has(id) && !NOT_STORED.includes(id),
    )
    assert.deepEqual(
      missing.map(([id]) => id),
      [],
    )
  })

  test('change the same records and write the same audit line', async () => {
    const base = await mkdtemp(join(tmpdir(), 'sluice-verbs-'))
    try {
      const [byCommand, byRoute] = [join(base, 'command'), join(base, 'route')]
      const [maskCommand, maskRoute] = [createMask(), createMask()]
      await using api = await openHandlers(byRoute)
      for (const [at, step] of STEPS.entries()) {
        const words = typeof step.words === 'function' ? await withStore(byCommand, step.words) : step.words
        await withStore(byCommand, async (store) => step.before?.(store))
        await step.before?.(api.store)
        const { code, stderr } = await sluiceHere([...words, '--state', byCommand])
        assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
        const body = typeof step.body === 'function' ? await step.body(api.store) : step.body
        const input: CallInput = { params: step.params ?? {}, query: step.query ?? {}, body }
        await api.call(step.id, input)

        const line = await withStore(byCommand, (store) => lastLine(store))
        const seen = [maskCommand(line.entry), maskRoute((await lastLine(api.store)).entry)]
        assert.deepEqual(seen[1], seen[0], `audit line of ${words.slice(0, 2).join(' ')}`)
        assert.equal(line.seq, at + 1, 'one line for each change')
      }
      const records = await withStore(byCommand, (store) => recordsOf(store))
      assert.deepEqual(maskRoute(await recordsOf(api.store)), maskCommand(records))
    } finally {
      await rm(base, { recursive: true, force: true })
    }
  })
})
