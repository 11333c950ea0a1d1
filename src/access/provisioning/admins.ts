import type { AdminRole } from '../../contract/admin-routes.ts'
import { didYouMean } from '../../core/did-you-mean.ts'
import { ServiceError } from '../../core/error.ts'
import { DAY_MS } from '../../core/human-units.ts'
import { type Admin, actorName } from '../store/model.ts'
import type { AccessTransaction } from '../store/store.ts'
import { createAdminToken, type NewToken } from '../token.ts'
import { makeId, type Provisioning, parseName, runChange } from './context.ts'

/** An administrator with the secret of its new token, which is not stored. */
export type IssuedAdmin = { readonly secret: string; readonly record: Admin }

/** Active administrators at most: their list is not paged. */
const ADMINS_MAX = 500
const EXPIRES_MS_MAX = 3660 * DAY_MS

/** Adds an administrator. `expiresMs` is the lifetime of its token; null for no end. */
export async function addAdmin(
  on: Provisioning,
  input: { name: string; role: AdminRole; expiresMs: number | null },
): Promise<IssuedAdmin> {
  const name = parseName(input.name, 'administrator')
  if (input.expiresMs !== null && !(input.expiresMs > 0 && input.expiresMs <= EXPIRES_MS_MAX))
    throw new ServiceError('invalid-value', 'the token of an administrator ends within 10 years, or never')
  return runChange(on, async (tx) => {
    const active = (await tx.find('admins', {})).filter(isActive)
    if (active.some((admin) => admin.name === name))
      throw new ServiceError('already-exists', `an administrator "${name}" already exists`, {
        fix: `Replace its token with: sluice admin rotate ${name}. Or remove it with: sluice admin remove ${name}`,
      })
    if (active.length >= ADMINS_MAX)
      throw new ServiceError('wrong-state', `there are ${ADMINS_MAX} administrators, which is the most (ADMINS_MAX)`, {
        fix: 'Remove one with: sluice admin remove NAME',
      })
    const token = createAdminToken(on.random)
    const record: Admin = {
      id: makeId('adm', on.random),
      revision: 0,
      name,
      role: input.role,
      ...hashOf(token),
      state: 'active',
      createdAt: on.nowMs,
      createdBy: actorName(on.actor),
      expiresAt: input.expiresMs === null ? null : on.nowMs + input.expiresMs,
    }
    await tx.put('admins', record)
    return {
      audit: { action: 'admin.add', subjects: [record.id], after: auditOf(record) },
      result: { secret: token.secret, record },
    }
  })
}

/** Replaces the token at once; open sessions end. A token that ends gets the same lifetime again. */
export async function rotateAdmin(on: Provisioning, input: { admin: string }): Promise<IssuedAdmin> {
  return runChange(on, async (tx) => {
    const before = await lookUpAdmin(tx, input.admin)
    const token = createAdminToken(on.random)
    const expiresAt = before.expiresAt === null ? null : on.nowMs + (before.expiresAt - before.createdAt)
    const record: Admin = {
      ...before,
      ...hashOf(token),
      createdAt: on.nowMs,
      createdBy: actorName(on.actor),
      expiresAt,
    }
    await tx.put('admins', record)
    return {
      audit: { action: 'admin.rotate', subjects: [record.id], before: auditOf(before), after: auditOf(record) },
      result: { secret: token.secret, record },
    }
  })
}

/** Revokes the token; open sessions end. */
export async function removeAdmin(on: Provisioning, input: { admin: string }): Promise<Admin> {
  return runChange(on, async (tx) => {
    const before = await lookUpAdmin(tx, input.admin)
    const record: Admin = { ...before, state: 'revoked' }
    await tx.put('admins', record)
    return { audit: { action: 'admin.remove', subjects: [record.id], before: auditOf(before) }, result: record }
  })
}

/** Finds an active administrator by its id or its name. */
async function lookUpAdmin(tx: Pick<AccessTransaction, 'get' | 'find'>, idOrName: string): Promise<Admin> {
  const byId = await tx.get('admins', idOrName)
  const found = byId ?? (await tx.find('admins', { name: idOrName })).find(isActive)
  if (found !== undefined && isActive(found)) return found
  if (found !== undefined)
    throw new ServiceError('wrong-state', `the administrator "${found.name}" is removed already`, {
      fix: 'Nothing needs to be done.',
    })
  const names = (await tx.find('admins', {})).filter(isActive).map(({ name }) => name)
  const near = didYouMean(idOrName, names)
  const hint = near === undefined ? '' : `, did you mean "${near}"?`
  throw new ServiceError('not-found', `there is no administrator "${idOrName}"${hint}`, {
    fix: 'List them with: sluice admin list',
  })
}

function isActive({ state }: Admin): boolean {
  return state === 'active'
}

function hashOf({ sha256, last4 }: NewToken): Pick<Admin, 'sha256' | 'last4'> {
  return { sha256, last4 }
}

/** The fields for the audit log, without the hash. */
function auditOf({ name, role, last4, expiresAt }: Admin): object {
  return { name, role, last4, expiresAt }
}
