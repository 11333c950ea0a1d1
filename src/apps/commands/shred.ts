import { buildRouteMap } from '@stricli/core'
import {
  type ChangeFlags,
  changeFlags,
  command,
  flag,
  type ListFlags,
  listFlags,
  optionalWord,
  word,
  words,
} from './define.ts'
import { notInBuild } from './not-in-build.ts'

const load = () => import('./run/shred.ts')

const subscription = word('SUB', 'Subscription name or id')

export const shredRoutes = buildRouteMap({
  docs: { brief: 'Shreds: where raw shreds go' },
  routes: {
    setDestination: command<ChangeFlags & { vouched?: boolean }, [string, string]>({
      brief: 'Replace the one destination of a subscription',
      examples: ['acme-shreds 127.0.0.1:20002 --vouched'],
      parameters: {
        flags: { vouched: flag.switch('You vouch for the destination; the audit log keeps your word'), ...changeFlags },
        positional: words(subscription, word('IP:PORT', 'Literal address and port')),
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
      parameters: { flags: changeFlags, positional: words(subscription) },
      load: async () => (await load()).pauseDestination,
    }),
    resume: command<ChangeFlags, [string]>({
      brief: 'Send again',
      examples: ['acme-shreds'],
      parameters: { flags: changeFlags, positional: words(subscription) },
      load: async () => (await load()).resumeDestination,
    }),
    verify: notInBuild('shred verify', 'Challenge a destination'),
    report: notInBuild('shred report', 'Delivery report of a subscription'),
    inspect: notInBuild('shred inspect', 'Decode shreds from a file or a port'),
    listen: notInBuild('shred listen', 'Count and rebuild what arrives at a port'),
  },
})
