import { buildRouteMap } from '@stricli/core'
import { command, commonFlags, listFlags } from '../../define.ts'

export const noticeRoutes = buildRouteMap({
  docs: { brief: 'Notices to your own systems: webhooks and a command' },
  routes: {
    list: command({
      brief: 'List the newest notices and their deliveries',
      examples: ['', '-o wide'],
      flags: listFlags,
      load: async () => (await import('./run/notice.ts')).listNotices,
    }),
    test: command({
      brief: 'Send a test notice to every receiver',
      examples: [''],
      flags: commonFlags,
      load: async () => (await import('./run/notice.ts')).testNotice,
    }),
  },
})
