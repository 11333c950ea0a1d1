import { buildRouteMap } from '@stricli/core'
import {
  argument,
  changeFlags,
  command,
  flag,
  listFlags,
  optionalArgument,
  subscriptionArgument,
} from '../../define.ts'

const load = () => import('./run/shred.ts')
const loadWatch = () => import('./run/shred-watch.ts')

const watchFlags = {
  leader: flag.text('Base58 identity of the leader, to verify signatures', 'KEY'),
  slotMs: flag.text('Length of a slot in milliseconds, for latencies (default: learned from the shreds)', 'MS'),
  for: flag.text('Stop after this time (default: on Ctrl-C)', 'DURATION'),
} as const

export const shredRoutes = buildRouteMap({
  docs: { brief: 'Shred destinations, delivery reports and capture tools' },
  routes: {
    setDestination: command({
      brief: 'Set the destination of a subscription',
      examples: ['acme-shreds 127.0.0.1:20002 --vouched'],
      flags: { vouched: flag.switch('Skip the proof of the destination; recorded in the audit log'), ...changeFlags },
      args: [subscriptionArgument, argument('IP:PORT', 'Literal address and port')],
      load: async () => (await load()).setDestinationCommand,
    }),
    show: command({
      brief: 'Show destinations',
      examples: ['', 'acme-shreds'],
      flags: listFlags,
      args: [optionalArgument('SUB', 'Only this subscription')],
      load: async () => (await load()).showDestinations,
    }),
    pause: command({
      brief: 'Pause sending and keep the destination',
      examples: ['acme-shreds'],
      flags: changeFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).pauseDestination,
    }),
    resume: command({
      brief: 'Resume sending',
      examples: ['acme-shreds'],
      flags: changeFlags,
      args: [subscriptionArgument],
      load: async () => (await load()).resumeDestination,
    }),
    verify: command({
      brief: 'Challenge a destination, or confirm it with its code',
      details:
        'A new destination receives three small packets with a code. It is proven when it echoes one (sluice shred listen does), or when the customer gives you the code and you enter it here.',
      examples: ['acme-shreds'],
      flags: changeFlags,
      args: [subscriptionArgument, optionalArgument('CODE', 'The code that the destination received')],
      load: async () => (await load()).verifyDestination,
    }),
    report: command({
      brief: 'Delivery report: packets sent and not sent per subscription',
      examples: ['', 'acme-shreds --since 7d --by day', '--by hour -o csv'],
      flags: {
        ...listFlags,
        since: flag.text('Start day, or time span before now (default 24h)', 'DATE'),
        by: flag.choice('Group by (default hour)', ['hour', 'day', 'total']),
        decoded: flag.switch('ShredStream Decoded instead: what was delivered and lost of the newest slots'),
      },
      args: [optionalArgument('SUB', 'Only this subscription')],
      load: async () => (await import('./run/shred-report.ts')).reportDelivery,
    }),
    inspect: command({
      brief: 'Decode shreds from a capture or a UDP port: headers, slots, completeness, signatures',
      details:
        'Reads pcap and pcapng (also .gz), ar archives of shreds and raw dumps. --leader verifies the signatures; an archive named *-KEY.ar contains the key in its name.',
      examples: ['shreds.pcap', 'shreds.pcap --transactions -o json'],
      flags: {
        ...listFlags,
        ...watchFlags,
        listen: flag.text('Read this UDP port instead of a file', 'PORT'),
        port: flag.text('Only packets of the capture to or from this port', 'PORT'),
        transactions: flag.switch('Verify the signatures of all transactions'),
      },
      args: [optionalArgument('FILE', 'Capture to read')],
      load: async () => (await loadWatch()).inspectShreds,
    }),
    listen: command({
      brief: 'Receive shreds on a UDP port as a customer does: count, recover, deshred',
      details: 'Prints a line for each slot and totals at the end; echoes the challenge of the operator.',
      examples: ['20011 --for 100ms'],
      flags: { ...listFlags, ...watchFlags, host: flag.text('Address to listen on (default 0.0.0.0)', 'IP') },
      args: [argument('PORT', 'UDP port to listen on')],
      load: async () => (await loadWatch()).listenToShreds,
    }),
  },
})
