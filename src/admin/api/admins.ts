import { addAdmin, type IssuedAdmin, removeAdmin, rotateAdmin } from '../../access/provisioning/admins.ts'
import type { Provisioning } from '../../access/provisioning/context.ts'
import type { Admin } from '../../access/store/model.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { ROLE_PERMISSIONS } from '../../contract/admin-routes.ts'
import type { AdminBodies } from '../../contract/schemas/admin.ts'
import { ServiceError } from '../../core/error.ts'
import { parseDuration } from '../../core/human-units.ts'
import type { Random } from '../../core/random.ts'
import type { AdminCall, AdminHandlers } from './handler.ts'

type AdminsHandlers = Pick<AdminHandlers, 'me' | 'adminList' | 'adminAdd' | 'adminRotate' | 'adminRemove'>

/** The administrator of the request, and the administrators themselves. */
export function adminsHandlers({ store, random }: { store: AccessStore; random: Random }): AdminsHandlers {
  const on = ({ actor, nowMs, isDryRun }: AdminCall): Provisioning => ({
    store,
    random,
    actor,
    nowMs,
    dryRun: isDryRun,
  })
  return {
    async me({ actor: { admin } }) {
      if (admin === undefined) throw new ServiceError('not-found', 'the request has no administrator')
      const { id, name, role } = admin
      return { body: { id, name, role, permissions: ROLE_PERMISSIONS[role] } }
    },
    async adminList() {
      const active = (await store.list('admins')).filter(({ state }) => state === 'active')
      return { body: { items: active.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map(wireOf), next_cursor: null } }
    },
    async adminAdd(call) {
      const { name, role, expires } = call.body as AdminBodies['adminAdd']
      const expiresMs = expires === undefined ? null : parseDuration(expires)
      if (expiresMs === undefined)
        throw new ServiceError('invalid-value', 'expires is not a time span', { fix: 'Write 90d.' })
      return issued(call, 201, await addAdmin(on(call), { name, role, expiresMs }))
    },
    async adminRotate(call) {
      return issued(call, 200, await rotateAdmin(on(call), { admin: String(call.params['admin']) }))
    },
    async adminRemove(call) {
      return { body: wireOf(await removeAdmin(on(call), { admin: String(call.params['admin']) })) }
    },
  }
}

function issued({ isDryRun }: AdminCall, status: number, { secret, record }: IssuedAdmin) {
  // A dry run creates nothing: its token would never be valid.
  return isDryRun ? { body: wireOf(record) } : { status, body: { ...wireOf(record), token: secret } }
}

function wireOf({ id, name, role, last4, state, createdAt, createdBy, expiresAt }: Admin) {
  const iso = (ms: number): string => new Date(ms).toISOString()
  return {
    id,
    name,
    role,
    last4,
    state,
    created_at: iso(createdAt),
    created_by: createdBy,
    expires_at: expiresAt === null ? null : iso(expiresAt),
  }
}
