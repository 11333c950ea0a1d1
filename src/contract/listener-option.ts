import { z } from 'zod'

/** Where a door listens, as every section of the config file says it: `listen`, and `tls` or `plaintext` where it is public. */
export function listenerOption(listen: string) {
  return {
    listen: z
      .string()
      .regex(/^(\[[0-9a-fA-F:.]+\]|[^\s:[\]]+):\d{1,5}$/, 'give HOST:PORT, such as 127.0.0.1:8899 or [::]:8899')
      .refine((text) => portOf(text) <= 65_535, 'the port is above 65535')
      .default(listen)
      .describe('Address and port to listen on; port 0 lets the system choose.'),
    tls: z
      .strictObject({
        cert: z.string().describe('PEM file of the certificate chain; read again when it changes.'),
        key: z.string().describe('PEM file of the private key, mode 0600.'),
      })
      .optional()
      .describe('TLS of this listener. A public address needs it.'),
    plaintext: z
      .literal('behind-proxy')
      .optional()
      .describe('Said where a proxy in front ends TLS; allows a public address without tls.'),
  }
}

/** The same as the host room wants it. */
export function listenAddress(option: {
  listen: string
  tls?: { cert: string; key: string } | undefined
  plaintext?: 'behind-proxy' | undefined
}) {
  const colon = option.listen.lastIndexOf(':')
  return {
    host: option.listen.slice(0, colon).replace(/^\[|\]$/g, ''),
    port: portOf(option.listen),
    tls: option.tls,
    plaintext: option.plaintext,
  }
}

function portOf(listen: string): number {
  return Number(listen.slice(listen.lastIndexOf(':') + 1))
}
