import { buildRouteMap } from '@stricli/core'
import { ADMIN_ROLES } from '../../../contract/admin-routes.ts'
import { argument, command, cutFlags, flag, listFlags, secretFlags } from '../../define.ts'

const load = () => import('./run/admin.ts')

export const adminRoutes = buildRouteMap({
  docs: { brief: 'Administrators of the admin API and the console' },
  routes: {
    add: command({
      brief: 'Add an administrator and show its token, once',
      details: `Roles: ${ADMIN_ROLES.join(', ')}. The token signs in to the console and is the bearer token of the admin API.`,
      examples: ['ana --role owner --print-token', 'bot --role read-only --expires 90d --print-token'],
      flags: {
        role: flag.required(`One of ${ADMIN_ROLES.join(', ')}`, 'ROLE'),
        expires: flag.text('The token ends after this time, such as 90d (default: no end)', 'TIME'),
        createStore: flag.switch('Make the access store if there is none'),
        ...secretFlags,
      },
      args: [argument('NAME', 'Short name, unique')],
      load: async () => (await load()).addAdminCommand,
    }),
    list: command({
      brief: 'List administrators and their roles',
      examples: ['', '-o wide'],
      flags: listFlags,
      load: async () => (await load()).listAdmins,
    }),
    rotate: command({
      brief: 'Replace the token of an administrator; the old one and open sessions end at once',
      examples: ['ana --yes --print-token'],
      flags: { yes: flag.switch('Skip the confirmation'), ...secretFlags },
      args: [argument('ADMIN', 'Name or id')],
      load: async () => (await load()).rotateAdminCommand,
    }),
    remove: command({
      brief: 'Remove an administrator; its token and open sessions end at once',
      examples: ['ana --yes'],
      flags: cutFlags,
      args: [argument('ADMIN', 'Name or id')],
      load: async () => (await load()).removeAdminCommand,
    }),
  },
})
