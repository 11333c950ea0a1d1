import { z } from 'zod'
import { portOf } from './listen-address.ts'
import { integer } from './option-fields.ts'

/** Options of a listener in each section of the config file: `listen`, `tls` or `plaintext` for a public address, and what one client address may open. */
export function listenerOption(listen: string) {
  return {
    listen: z
      .string()
      .regex(/^(\[[0-9a-fA-F:.]+\]|[^\s:[\]]+):\d{1,5}$/, 'give HOST:PORT, such as 127.0.0.1:8899 or [::]:8899')
      .refine((text) => portOf(text) <= 65_535, 'the port is above 65535')
      .default(listen)
      .describe('Address and port to listen on; port 0 picks a free port.'),
    tls: z
      .strictObject({
        cert: z.string().describe('PEM file of the certificate chain; reloaded when it changes.'),
        key: z.string().describe('PEM file of the private key, mode 0600.'),
      })
      .optional()
      .describe('TLS of this listener. Required for a public address.'),
    plaintext: z
      .literal('behind-proxy')
      .optional()
      .describe('Set if a proxy in front terminates TLS; allows a public address without tls.'),
    addressConnectionsMax: integer(1, 1_000_000)
      .default(200)
      .describe(
        'Open connections of one client address; an IPv6 /64 counts as one. Loopback, and all clients behind a proxy (plaintext), are not counted.',
      ),
    addressConnectionsPerSecond: integer(1, 1_000_000)
      .default(50)
      .describe('New connections of one client address per second; as a burst it may open addressConnectionsMax.'),
  }
}

/** Its keys, which a service receives as the options of its listener. */
export type ListenerKey = keyof ReturnType<typeof listenerOption>

/** Origins of web pages, as a browser sends them in the header Origin. */
export function originsOption(description: string) {
  return z
    .array(z.string().regex(/^https?:\/\/[^/\s]+$/, 'give an origin such as https://app.example.com'))
    .max(64)
    .default([])
    .describe(description)
}
