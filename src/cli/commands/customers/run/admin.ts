import { displayAdminToken } from '../../../../access/token.ts'
import { ADMIN_ROLES } from '../../../../contract/admin-routes.ts'
import { isoTime, toWireJson } from '../../../../contract/wire-json.ts'
import { ServiceError } from '../../../../core/error.ts'
import { parseDuration } from '../../../../core/human-units.ts'
import { printTime } from '../../../dates.ts'
import type { CliContext, ConfirmFlags, CreateStoreFlags, ListFlags, SecretFlags } from '../../../define.ts'
import { admins, type NewAdmin } from '../../../operations/admins.ts'
import { openOperations } from '../../../operations/open.ts'
import { confirmCut } from '../../../output/confirm.ts'
import { printList } from '../../../output/print.ts'
import { done, reportChange } from '../../../output/report-change.ts'
import { secretLocation } from '../../../output/secret-output.ts'

export async function addAdminCommand(
  this: CliContext,
  flags: SecretFlags & CreateStoreFlags & { role: string; expires?: string },
  name: string,
): Promise<void> {
  const role = ADMIN_ROLES.find((each) => each === flags.role)
  if (role === undefined)
    throw new ServiceError('invalid-value', `"${flags.role}" is not a role: use one of ${ADMIN_ROLES.join(', ')}`)
  const expiresMs = flags.expires === undefined ? null : parseDuration(flags.expires)
  if (expiresMs === undefined)
    throw new ServiceError('invalid-value', `"${flags.expires}" is not a time span: write 90d or 12h`)
  using output = secretLocation(this, flags)
  await using on = await openOperations(admins, this, flags, flags.createStore === true ? 'create' : 'write')
  showIssued(this, flags, output.reveal, await on.add({ name, role, expires: flags.expires, expiresMs }))
}

export async function rotateAdminCommand(
  this: CliContext,
  flags: SecretFlags & { yes?: boolean },
  admin: string,
): Promise<void> {
  using output = secretLocation(this, flags)
  await using on = await openOperations(admins, this, flags)
  await confirmCut(this, flags, `this revokes the present token of administrator ${admin} and ends open sessions`)
  showIssued(this, flags, output.reveal, await on.rotate(admin))
}

export async function removeAdminCommand(this: CliContext, flags: ConfirmFlags, admin: string): Promise<void> {
  await using on = await openOperations(admins, this, flags)
  await confirmCut(this, flags, `this revokes the token of administrator ${admin} and ends open sessions`)
  const removed = await on.remove(admin)
  reportChange(this, flags, removed, `administrator ${removed.name} removed`)
}

export async function listAdmins(this: CliContext, flags: ListFlags): Promise<void> {
  await using on = await openOperations(admins, this, flags, 'read')
  printList(this, flags, {
    rows: (await on.list()).toSorted((a, b) => a.name.localeCompare(b.name)),
    empty: 'no administrators yet; add one with: sluice admin add NAME --role owner',
    columns: [
      { title: 'NAME', value: (row) => row.name },
      { title: 'ROLE', value: (row) => row.role },
      { title: 'TOKEN', value: (row) => displayAdminToken(row.last4) },
      { title: 'CREATED AT', value: (row) => isoTime(row.createdAt), show: (row) => printTime(row.createdAt) },
      { title: 'CREATED BY', value: (row) => row.createdBy, wide: true },
      {
        title: 'EXPIRES AT',
        value: (row) => isoTime(row.expiresAt),
        show: (row) => (row.expiresAt === null ? '-' : printTime(row.expiresAt)),
      },
      { title: 'ID', value: (row) => row.id, wide: true },
    ],
  })
}

function showIssued(
  context: CliContext,
  flags: SecretFlags,
  reveal: (text: string) => void,
  { token, admin }: NewAdmin,
): void {
  if (flags.dryRun === true) return done(context, flags, `a token for administrator ${admin.name} would be issued`)
  if (flags.json === true) return reveal(`${JSON.stringify({ ...(toWireJson(admin) as object), token }, null, 2)}\n`)
  reveal(`${token}\n`)
  done(context, flags, `token of administrator ${admin.name}, role ${admin.role}; it is shown only once`)
}
