import { z } from 'zod'
import { ADMIN_ROLES } from '../../contract/admin-routes.ts'
import { integer } from '../../contract/option-fields.ts'
import { isLoopbackName } from '../../contract/public-url.ts'
import { isSecretRef, SECRET_REF_RULE } from '../../platform/config/secret-ref.ts'

const GROUPS_MAX = 200

const claim = z
  .string()
  .regex(/^[\x21-\x7e]{1,100}$/, 'give the name of a claim, such as groups: 1 to 100 ASCII characters without spaces')

/** The `admin.oidc` section of the configuration. */
export const oidcOptions = z.strictObject({
  issuer: z
    .string()
    .max(500)
    .superRefine((text, context) => {
      const fault = issuerFault(text)
      if (fault !== undefined) context.addIssue({ code: 'custom', message: fault })
    })
    .describe(
      'Issuer, exactly as its discovery document has it: the document is at this URL with /.well-known/openid-configuration.',
    ),
  clientId: z
    .string()
    .regex(/^[\x20-\x7e]{1,200}$/, 'give 1 to 200 printable ASCII characters')
    .describe('Client that is registered with the issuer for Sluice.'),
  clientSecret: z
    .string()
    .refine(isSecretRef, SECRET_REF_RULE)
    .optional()
    .describe('Reference to the secret of the client; a public client has none.'),
  scopes: z
    .array(
      z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,100}$/, 'give one scope without spaces and quotes, such as groups'),
    )
    .max(20)
    .refine((scopes) => scopes.includes('openid'), 'add openid: without it the issuer sends no ID token')
    .default(['openid', 'profile', 'email', 'groups'])
    .describe('Scopes that are requested. Remove those that the issuer does not know.'),
  groupsClaim: claim
    .default('groups')
    .describe('Claim with the groups of a person, in the ID token or at the userinfo endpoint.'),
  nameClaim: claim.default('name').describe('Claim with the name of a person, for the console and the audit log.'),
  roles: z
    .record(z.string().min(1).max(256), z.enum(ADMIN_ROLES))
    .refine((roles) => Object.keys(roles).length > 0, 'give at least one group and its role')
    .refine((roles) => Object.keys(roles).length <= GROUPS_MAX, `give at most ${GROUPS_MAX} groups`)
    .describe('Role of each group. With several groups the strongest role counts: owner, support, billing, read-only.'),
  label: z
    .string()
    .regex(/^[^\p{Cc}\p{Cf}<>]{1,40}$/u, 'give 1 to 40 characters without line breaks, < and >')
    .default('OpenID Connect')
    .describe('Name of the issuer on the button "Sign in with …".'),
  sessionHours: integer(1, 24)
    .default(8)
    .describe('A session ends so long after the sign-in, and after 30 minutes without a request.'),
})

export type OidcOptions = z.output<typeof oidcOptions>

/** What is wrong with the URL of an issuer; undefined where it can be used. */
function issuerFault(text: string): string | undefined {
  if (!URL.canParse(text) || !/^https?:\/\//.test(text)) return 'give a URL such as https://login.example.net'
  const { protocol, username, password, hostname } = new URL(text)
  if (username !== '' || password !== '')
    return 'remove the user and password: clientId and clientSecret have keys of their own'
  if (/[?#]/.test(text)) return 'remove the query and the fragment'
  if (protocol === 'http:' && !isLoopbackName(hostname))
    return 'http is not encrypted: use https, or a loopback host such as 127.0.0.1'
  return undefined
}
