import { type AdminPermission, type AdminRole, ROLE_PERMISSIONS } from '../../contract/admin-routes.ts'
import type { ViewName } from './route.ts'

export type ViewEntry = { readonly view: ViewName; readonly title: string; readonly permission: AdminPermission }

/** The views in the order of the navigation, in groups. */
export const NAVIGATION: readonly { readonly title: string; readonly views: readonly ViewEntry[] }[] = [
  {
    title: 'Customers',
    views: [
      { view: 'overview', title: 'Overview', permission: 'read' },
      { view: 'customers', title: 'Customers', permission: 'read' },
      { view: 'subscriptions', title: 'Subscriptions', permission: 'read' },
      { view: 'usage', title: 'Usage', permission: 'read' },
      { view: 'billing', title: 'Billing', permission: 'bill' },
      { view: 'plans', title: 'Products and plans', permission: 'read' },
    ],
  },
  {
    title: 'Services',
    views: [
      { view: 'connections', title: 'Connections', permission: 'read' },
      { view: 'nodes', title: 'Nodes', permission: 'read' },
      { view: 'shreds', title: 'Shreds', permission: 'read' },
      { view: 'sender', title: 'Sender', permission: 'read' },
      { view: 'indexer', title: 'Indexer', permission: 'read' },
    ],
  },
  {
    title: 'Records',
    views: [
      { view: 'audit', title: 'Audit log', permission: 'read' },
      { view: 'notices', title: 'Notices', permission: 'read' },
      { view: 'admins', title: 'Administrators', permission: 'administer' },
    ],
  },
]

/** Whether a role has a permission; what it has not is not offered. */
export function mayDo(role: AdminRole | undefined, permission: AdminPermission): boolean {
  return role !== undefined && ROLE_PERMISSIONS[role]?.includes(permission) === true
}

const ENTRIES: readonly ViewEntry[] = NAVIGATION.flatMap(({ views }) => views)

export function titleOf(view: ViewName): string {
  return ENTRIES.find((entry) => entry.view === view)?.title ?? 'Overview'
}

export function permissionOf(view: ViewName): AdminPermission {
  return ENTRIES.find((entry) => entry.view === view)?.permission ?? 'read'
}

/** The views that a role may see. */
export function viewsOf(role: AdminRole): readonly ViewEntry[] {
  return ENTRIES.filter(({ permission }) => mayDo(role, permission))
}
