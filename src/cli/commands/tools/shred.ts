import { buildRouteMap } from '@stricli/core'
import {
  type ChangeFlags,
  changeFlags,
  command,
  flag,
  type ListFlags,
  listFlags,
  optionalWord,
  subscriptionWord,
  word,
  words,
} from '../../define.ts'

const load = () => import('./run/shred.ts')
const loadWatch = () => import('./run/shred-watch.ts')

export type ReportFlags = ListFlags & { since?: string; by?: 'hour' | 'day' | 'total' }
export type WatchFlags = ListFlags & { leader?: string; slotMs?: string; for?: string }
export type InspectFlags = WatchFlags & { listen?: string; port?: string; transactions?: boolean }
export type ListenFlags = WatchFlags & { host?: string }

const watchFlags = {
  leader: flag.text('Base58 identity of the leader, to check signatures', 'KEY'),
  slotMs: flag.text('Length of a slot in milliseconds, for latencies (default 400)', 'MS'),
  for: flag.text('Stop after this time (default: at Ctrl-C)', 'DURATION'),
} as const

export const shredRoutes = buildRouteMap({
  docs: { brief: 'Shreds: where raw shreds go' },
  routes: {
    setDestination: command<ChangeFlags & { vouched?: boolean }, [string, string]>({
      brief: 'Replace the one destination of a subscription',
      examples: ['acme-shreds 127.0.0.1:20002 --vouched'],
      parameters: {
        flags: { vouched: flag.switch('You vouch for the destination; the audit log keeps your word'), ...changeFlags },
        positional: words(subscriptionWord, word('IP:PORT', 'Literal address and port')),
      },
      load: async () => (await load()).setDestinationCommand,
    }),
    show: command<ListFlags, [string?]>({
      brief: 'Show destinations',
      examples: ['', 'acme-shreds'],
      parameters: {
        flags: listFlags,
        aliases: { o: 'output' },
        positional: words(optionalWord('SUB', 'Only of this subscription')),
      },
      load: async () => (await load()).showDestinations,
    }),
    pause: command<ChangeFlags, [string]>({
      brief: 'Stop sending, keep the destination',
      examples: ['acme-shreds'],
      parameters: { flags: changeFlags, positional: words(subscriptionWord) },
      load: async () => (await load()).pauseDestination,
    }),
    resume: command<ChangeFlags, [string]>({
      brief: 'Send again',
      examples: ['acme-shreds'],
      parameters: { flags: changeFlags, positional: words(subscriptionWord) },
      load: async () => (await load()).resumeDestination,
    }),
    verify: command<ChangeFlags, [string, string?]>({
      brief: 'Challenge a destination, or take the code it was sent',
      details:
        'A new destination gets three small packets with a code. It is proven when it sends one back (sluice shred listen does), or when the customer reads the code to you and you give it here.',
      examples: ['acme-shreds'],
      parameters: {
        flags: changeFlags,
        positional: words(subscriptionWord, optionalWord('CODE', 'The code the destination was sent')),
      },
      load: async () => (await load()).verifyDestination,
    }),
    report: command<ReportFlags, [string?]>({
      brief: 'Delivery report: what each subscription was sent, and what not',
      examples: ['', 'acme-shreds --since 7d --by day', '--by hour -o csv'],
      parameters: {
        flags: {
          ...listFlags,
          since: flag.text('From this day or time span back (default 24h)', 'DATE'),
          by: { kind: 'enum', values: ['hour', 'day', 'total'], optional: true, brief: 'Grouped by (default hour)' },
        },
        aliases: { o: 'output' },
        positional: words(optionalWord('SUB', 'Only of this subscription')),
      },
      load: async () => (await import('./run/shred-report.ts')).reportDelivery,
    }),
    inspect: command<InspectFlags, [string?]>({
      brief: 'Decode shreds from a capture or a port: headers, slots, completeness, signatures',
      details:
        'Reads pcap and pcapng (also .gz), Unix archives of shreds and plain dumps. With --leader the signatures are checked; a name that ends in -KEY.ar brings its own key.',
      examples: ['shreds.pcap', 'shreds.pcap --transactions -o json'],
      parameters: {
        flags: {
          ...listFlags,
          ...watchFlags,
          listen: flag.text('Read this UDP port instead of a file', 'PORT'),
          port: flag.text('Only packets to or from this port of the capture', 'PORT'),
          transactions: flag.switch('Check the signatures of all transactions'),
        },
        aliases: { o: 'output' },
        positional: words(optionalWord('FILE', 'Capture to read')),
      },
      load: async () => (await loadWatch()).inspectShreds,
    }),
    listen: command<ListenFlags, [string]>({
      brief: 'Count, recover and rebuild what arrives at a port, as a customer would',
      details: 'Prints a line for each slot and the sums at the end; answers the challenge of the operator.',
      examples: ['20011 --for 100ms'],
      parameters: {
        flags: { ...listFlags, ...watchFlags, host: flag.text('Address to listen on (default 0.0.0.0)', 'IP') },
        aliases: { o: 'output' },
        positional: words(word('PORT', 'UDP port that shreds come to')),
      },
      load: async () => (await loadWatch()).listenToShreds,
    }),
  },
})
