import { buildRouteMap } from '@stricli/core'
import { notInBuild } from './not-in-build.ts'

/** Command groups whose services this build does not have yet. */
export const tipRoutes = buildRouteMap({
  docs: { brief: 'Sender tips' },
  routes: {
    accounts: notInBuild('tip accounts', 'List tip accounts'),
    check: notInBuild('tip check', 'Check the tip of a transaction'),
    stats: notInBuild('tip stats', 'Tips received'),
  },
})

export const ringRoutes = buildRouteMap({
  docs: { brief: 'Execution event ring' },
  routes: {
    inspect: notInBuild('ring inspect', 'Header, schema and counts of a ring'),
    fold: notInBuild('ring fold', 'Fold a ring or snapshot into metrics'),
    record: notInBuild('ring record', 'Record a ring'),
    watch: notInBuild('ring watch', 'Watch a ring live'),
  },
})

export const topCommand = notInBuild('top', 'Live view of products, customers and upstreams')
