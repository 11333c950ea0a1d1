import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CONTEXT, ENGINES, type Engines, type StoreBench, startEngines } from '../../../test/support/store/engines.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createLogger } from '../../platform/telemetry/logger.ts'
import { verifyAudit } from '../audit/verify.ts'
import type { AccessStore } from '../store/store.ts'
import { hashToken, isAdminTokenText, isTokenText } from '../token.ts'
import { addAdmin, removeAdmin, rotateAdmin } from './admins.ts'

const DAY_MS = 86_400_000

describe('administrators', () => {
  let engines: Engines
  before(async () => {
    engines = await startEngines()
  })
  after(() => engines[Symbol.asyncDispose]())

  for (const engine of ENGINES) {
    test(`are added, rotated and removed on ${engine}, with the administrator in the audit line`, async () => {
      await using bench: StoreBench = await engines.bench(engine)
      await using store: AccessStore = await bench.open()
      const random = createSeededRandom(7)
      const admin = { id: 'adm_1', name: 'root', role: 'owner', address: '192.0.2.1' } as const
      const on = { store, random, nowMs: CONTEXT.nowMs, actor: { ...CONTEXT.actor, admin } }

      const added = await addAdmin(on, { name: 'ana', role: 'support', expiresMs: 90 * DAY_MS })
      assert.ok(isAdminTokenText(added.secret) && !isTokenText(added.secret))
      assert.equal(added.record.sha256, hashToken(added.secret))
      assert.equal(added.record.createdBy, 'admin:root')
      await assert.rejects(addAdmin(on, { name: 'ana', role: 'owner', expiresMs: null }), { code: 'already-exists' })

      const rotated = await rotateAdmin({ ...on, nowMs: on.nowMs + DAY_MS }, { admin: 'ana' })
      assert.equal(rotated.record.id, added.record.id)
      assert.equal(rotated.record.expiresAt, on.nowMs + 91 * DAY_MS)
      assert.deepEqual(await store.find('admins', { sha256: added.record.sha256 }), [])

      await removeAdmin(on, { admin: added.record.id })
      await assert.rejects(rotateAdmin(on, { admin: 'ana' }), { code: 'not-found' })
      await assert.rejects(removeAdmin(on, { admin: added.record.id }), { code: 'wrong-state' })
      const again = await addAdmin(on, { name: 'ana', role: 'owner', expiresMs: null })
      assert.notEqual(again.record.id, added.record.id)

      const lines: { action: string; actor: { admin?: object } }[] = []
      for await (const line of store.auditLines(1)) {
        assert.ok(!line.includes(added.secret) && !line.includes(added.record.sha256))
        lines.push(JSON.parse(line) as (typeof lines)[number])
      }
      assert.deepEqual(
        lines.map(({ action }) => action),
        ['admin.add', 'admin.rotate', 'admin.remove', 'admin.add'],
      )
      for (const line of lines) assert.deepEqual(line.actor.admin, admin)
      assert.deepEqual(await store.integrity(), [])
      assert.deepEqual((await verifyAudit(store)).findings, [])
    })
  }
})

test('the token of an administrator is masked in logs', () => {
  let text = ''
  const log = createLogger({ level: 'info', destination: { write: (line: string) => (text += line) } })
  const secret = `sla_${'a1B2'.repeat(9)}zz`
  log.info({ note: `used ${secret}`, err: new Error(secret) }, 'message')
  assert.ok(text.includes('message') && !text.includes(secret))
})
