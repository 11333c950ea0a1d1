import { addAdmin, type IssuedAdmin, removeAdmin, rotateAdmin } from '../../access/provisioning/admins.ts'
import type { Admin } from '../../access/store/model.ts'
import type { AdminRole } from '../../contract/admin-routes.ts'
import type { Group } from './open.ts'

export type ShownAdmin = Omit<Admin, 'revision' | 'sha256'>
/** Without a token after a dry run. */
export type NewAdmin = { readonly admin: ShownAdmin; readonly token: string | undefined }

export type AdminOperations = {
  add(input: {
    name: string
    role: AdminRole
    expires: string | undefined
    expiresMs: number | null
  }): Promise<NewAdmin>
  rotate(admin: string): Promise<NewAdmin>
  remove(admin: string): Promise<ShownAdmin>
  list(): Promise<readonly ShownAdmin[]>
}

export const admins: Group<AdminOperations> = {
  local(session, flags) {
    const on = session.provisioning(flags)
    const issued = ({ secret, record }: IssuedAdmin): NewAdmin => ({ admin: shownOf(record), token: secret })
    return {
      add: async ({ name, role, expiresMs }) => issued(await addAdmin(on, { name, role, expiresMs })),
      rotate: async (admin) => issued(await rotateAdmin(on, { admin })),
      remove: async (admin) => shownOf(await removeAdmin(on, { admin })),
      list: async () => (await session.store.list('admins')).filter(({ state }) => state === 'active'),
    }
  },

  remote(api) {
    type Wire = ShownAdmin & { token?: string }
    const issued = ({ token, ...admin }: Wire): NewAdmin => ({ admin, token })
    return {
      add: async ({ name, role, expires }) =>
        issued(await api.call<Wire>('adminAdd', { body: { name, role, expires } })),
      rotate: async (admin) => issued(await api.call<Wire>('adminRotate', { params: { admin } })),
      remove: (admin) => api.call('adminRemove', { params: { admin } }),
      list: () => api.list('adminList'),
    }
  },
}

/** Without the hash of the token. */
function shownOf({ id, name, role, last4, state, createdAt, createdBy, expiresAt }: Admin): ShownAdmin {
  return { id, name, role, last4, state, createdAt, createdBy, expiresAt }
}
