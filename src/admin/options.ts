import { z } from 'zod'
import { listenAddress } from '../contract/listen-address.ts'
import { listenerOption } from '../contract/listener-option.ts'
import { isLoopbackName } from '../contract/public-url.ts'
import { publicUrlOption } from '../contract/public-url-option.ts'
import { networkOption } from '../platform/config/network-option.ts'
import { oidcOptions } from './oidc/options.ts'

const fields = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether the admin API runs in `serve`.'),
  ...listenerOption('127.0.0.1:9470'),
  publicUrl: publicUrlOption('http').publicUrl.describe(
    'Address of the admin API and the console where it is not that of the listener, such as https://admin.example.net. Without a path where admin.oidc is configured.',
  ),
  hosts: z
    .array(z.string().regex(/^[^\s/:]+$/, 'give a host name without scheme and port'))
    .max(64)
    .default([])
    .describe(
      'Host names of this listener, besides localhost, IP addresses, the name in listen and that of publicUrl. Requests with another Host are refused with 421.',
    ),
  trustedProxies: z
    .array(networkOption)
    .max(64)
    .default([])
    .describe('Addresses and networks of proxies whose x-forwarded-for header is used as the client address.'),
  oidc: oidcOptions
    .optional()
    .describe(
      'Sign-in of people by an OpenID Connect issuer. Applied on reload, unless publicUrl or listen of admin change with it: then at a restart. See docs/admin-api.md.',
    ),
})

export const adminOptions = fields.superRefine(({ oidc, publicUrl, listen }, context) => {
  if (oidc === undefined) return
  const fault = oidcUrlFault(publicUrl, listen)
  if (fault !== undefined) context.addIssue({ code: 'custom', path: ['publicUrl'], message: fault })
})

/** What is wrong with the public address for sign-in with OpenID Connect; undefined where it can be used. */
function oidcUrlFault(publicUrl: string | undefined, listen: string): string | undefined {
  if (publicUrl === undefined)
    return isLoopback(listenAddress({ listen }).host)
      ? undefined
      : 'set it for admin.oidc, such as https://admin.example.net: the issuer sends browsers back to this address'
  if (!URL.canParse(publicUrl)) return undefined
  // The cookies and the paths of a sign-in are those of a listener that has its host for itself.
  const { origin, pathname } = new URL(publicUrl)
  if (pathname === '/') return undefined
  return `remove the path ${pathname}: sign-in with admin.oidc needs a host name of its own. Write ${origin} if the admin API is served there, else give it a host name such as https://admin.example.net`
}

function isLoopback(host: string): boolean {
  return host === '::1' || isLoopbackName(host)
}
