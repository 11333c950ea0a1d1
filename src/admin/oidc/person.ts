import { hash } from 'node:crypto'
import { ADMIN_ROLES, type AdminRole } from '../../contract/admin-routes.ts'
import { AdminError } from '../api/errors.ts'
import type { OidcOptions } from './options.ts'

/** A person that the issuer vouches for. There is no record in the store. */
export type OidcPerson = {
  /** Stable, and not that of another person: `oidc:ISSUER#SUB`. */
  readonly id: string
  readonly name: string
  /** At the sign-in. */
  readonly role: AdminRole
  readonly groups: readonly string[]
  readonly issuer: string
  readonly clientId: string
}

type Claims = Readonly<Record<string, unknown>>
type PersonOptions = Pick<OidcOptions, 'issuer' | 'clientId' | 'groupsClaim' | 'nameClaim' | 'roles'>

const ID_CHARS_MAX = 160
const NAME_CHARS_MAX = 80
const GROUPS_MAX = 1000
const GROUP_CHARS_MAX = 256

/** The person of verified claims. Throws 403 if none of its groups has a role. */
export function personOf(sub: string, claims: Claims, options: PersonOptions): OidcPerson {
  const { issuer, clientId, groupsClaim, nameClaim, roles } = options
  const groups = groupsOf(claims[groupsClaim])
  const role = roleOfGroups(groups, roles)
  if (role === undefined) throw noRole(groups.length, groupsClaim)
  return {
    id: idOf(issuer, sub),
    name: nameOf(claims[nameClaim]) ?? nameOf(sub) ?? 'unnamed',
    role,
    groups,
    issuer,
    clientId,
  }
}

/** The strongest role of the groups. */
export function roleOfGroups(groups: readonly string[], roles: OidcOptions['roles']): AdminRole | undefined {
  const given = new Set(groups.filter((group) => Object.hasOwn(roles, group)).map((group) => roles[group]))
  // From the strongest on.
  return ADMIN_ROLES.find((role) => given.has(role))
}

function groupsOf(value: unknown): string[] {
  const list = typeof value === 'string' ? [value] : Array.isArray(value) ? (value as unknown[]) : []
  if (list.length > GROUPS_MAX)
    throw new AdminError(
      'sign-in-refused',
      `the issuer sent more than GROUPS_MAX, ${GROUPS_MAX}, groups`,
      'Let the issuer send only the groups that this client needs.',
    )
  return list.filter((group) => typeof group === 'string' && group.length <= GROUP_CHARS_MAX) as string[]
}

function noRole(groups: number, claim: string): AdminError {
  return new AdminError(
    'no-role',
    groups === 0
      ? `the issuer sent no groups of you in the claim "${claim}"`
      : `the issuer sent ${groups} ${groups === 1 ? 'group' : 'groups'} of you, and none has a role here`,
    groups === 0
      ? 'Ask the operator to let the issuer send groups to this client, or to correct admin.oidc.groupsClaim and admin.oidc.scopes.'
      : 'Ask the operator to add you to a group of admin.oidc.roles, then sign in again.',
  )
}

/** The address of an issuer without its scheme. What would be too long, or is not plain text, is replaced by its hash. */
function idOf(issuer: string, sub: string): string {
  const plain = `oidc:${issuer.replace(/^https:\/\//, '')}#${sub}`
  if (plain.length <= ID_CHARS_MAX && /^[\x21-\x7e]+$/.test(plain)) return plain
  return `oidc:${new URL(issuer).host.slice(0, 80)}#sha256:${hash('sha256', `${issuer}#${sub}`, 'hex').slice(0, 40)}`
}

/** One line that a terminal can print. */
function nameOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  const text = value
    .slice(0, 4 * NAME_CHARS_MAX)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\p{C}/gu, '')
    .trim()
  return text === '' ? undefined : text.slice(0, NAME_CHARS_MAX)
}
