import { buildRouteMap } from '@stricli/core'
import { command, commonFlags, flag } from '../../define.ts'

export const benchRoutes = buildRouteMap({
  docs: { brief: 'Measurements against running servers' },
  routes: {
    stream: command({
      brief: 'Compare two gRPC streams: which delivers a transaction first, and by how much',
      details: [
        'A stream is "decoded" (SubscribeDeshred) or "geyser" (Subscribe, transactions at processed), optionally with the address of another server: geyser=https://node.example.net:10000. Without an address it is the running process of this machine. An address with a secret is given by reference: geyser=env:NAME or geyser=file:PATH.',
        'Tokens are given by reference only. Transactions count for --seconds, beginning 2 s after both streams have delivered one; it then waits 2 s for those that only one stream has. Ctrl-C prints the result so far. Both streams should be about equally far away, and votes are left out unless --votes is given.',
      ].join('\n'),
      examples: [
        '--seconds 60 --first-token env:SLUICE_TOKEN --second-token env:SLUICE_TOKEN',
        '--first decoded --first-token env:SLUICE_TOKEN --second geyser=https://node.example.net:10000 --second-token file:/etc/sluice/node.key',
      ],
      flags: {
        ...commonFlags,
        first: flag.text('First stream (default decoded)', 'STREAM'),
        second: flag.text('Second stream (default geyser)', 'STREAM'),
        firstToken: flag.text('Reference to its token: env:NAME or file:PATH', 'REF'),
        secondToken: flag.text('Reference to its token: env:NAME or file:PATH', 'REF'),
        tokenHeader: flag.text('Name of the header with the token (default x-token)', 'NAME'),
        seconds: flag.text('How long transactions count (default 30)', 'N'),
        accounts: flag.text('Only transactions with one of these accounts, separated by commas', 'ADDRESSES'),
        votes: flag.switch('Vote transactions too'),
      },
      load: async () => (await import('./run/bench-stream.ts')).benchStream,
    }),
  },
})
