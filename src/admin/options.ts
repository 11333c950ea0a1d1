import { z } from 'zod'
import { listenAddress } from '../contract/listen-address.ts'
import { listenerOption } from '../contract/listener-option.ts'
import { isLoopbackName } from '../contract/public-url.ts'
import { publicUrlOption } from '../contract/public-url-option.ts'
import { oidcOptions } from './oidc/options.ts'

const fields = z.strictObject({
  enabled: z.boolean().default(true).describe('Whether the admin API runs in `serve`.'),
  ...listenerOption('127.0.0.1:9470'),
  publicUrl: publicUrlOption('http').publicUrl.describe(
    'Address of the admin API and the console where it is not that of the listener, such as https://admin.example.net.',
  ),
  hosts: z
    .array(z.string().regex(/^[^\s/:]+$/, 'give a host name without scheme and port'))
    .max(64)
    .default([])
    .describe(
      'Host names of this listener, besides localhost, IP addresses, the name in listen and that of publicUrl. Requests with another Host are refused with 421.',
    ),
  trustedProxies: z
    .array(z.string().min(1))
    .max(64)
    .default([])
    .describe('Addresses and networks of proxies whose x-forwarded-for header is used as the client address.'),
  oidc: oidcOptions
    .optional()
    .describe('Sign-in of people by an OpenID Connect issuer. Applied on reload. See docs/admin-api.md.'),
})

export const adminOptions = fields.superRefine(({ oidc, publicUrl, listen }, context) => {
  if (oidc === undefined || publicUrl !== undefined || isLoopback(listenAddress({ listen }).host)) return
  context.addIssue({
    code: 'custom',
    path: ['publicUrl'],
    message: 'set it for admin.oidc: the issuer sends browsers back to this address',
  })
})

function isLoopback(host: string): boolean {
  return host === '::1' || isLoopbackName(host)
}
