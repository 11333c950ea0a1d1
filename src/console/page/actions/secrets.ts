import type { AdminRouteId } from '../../../contract/admin-routes.ts'
import type { SecretRecord } from '../../client/wire.ts'
import type { Store } from '../store.ts'
import type { DialogSpec, FieldSpec } from '../ui/dialog-spec.ts'

const GRACE: FieldSpec = {
  name: 'grace',
  label: 'The old token',
  kind: 'select',
  value: '24h',
  options: [
    { value: '1h', label: 'works for 1 more hour' },
    { value: '24h', label: 'works for 24 more hours' },
    { value: '7d', label: 'works for 7 more days' },
    { value: '', label: 'is revoked at once, open streams are closed' },
  ],
}

type SecretChange = Pick<DialogSpec, 'title' | 'submit'> &
  Partial<Pick<DialogSpec, 'text' | 'fields' | 'isDestructive'>> & {
    readonly id: AdminRouteId
    /** The title of what is shown once. */
    readonly shown: string
  }

/** A change whose response contains a secret, once. */
function secretChange({ client, report, secret }: Store, name: string, change: SecretChange): DialogSpec {
  const { id, shown, ...dialog } = change
  return {
    ...dialog,
    perform: ({ grace = '' }, key) =>
      client.call(id, {
        params: { subscription: name },
        ...(grace === '' ? {} : { body: { grace } }),
        key,
      }),
    done: (value) => {
      secret.value = { title: shown, secret: value as SecretRecord }
      report(shown)
    },
  }
}

export function rotateToken(store: Store, name: string): DialogSpec {
  return secretChange(store, name, {
    id: 'tokenRotate',
    title: `Replace the token of ${name}`,
    text: 'The new token is shown once, after this. A token before the present one that still works for a time is revoked at once.',
    fields: [GRACE],
    submit: 'Replace token',
    shown: `New token of ${name}`,
  })
}

export function issueToken(store: Store, name: string): DialogSpec {
  return secretChange(store, name, {
    id: 'tokenIssue',
    title: `Issue a token to ${name}`,
    text: 'It is shown once, after this.',
    submit: 'Issue token',
    shown: `New token of ${name}`,
  })
}

export function revokeToken({ client, report }: Store, name: string): DialogSpec {
  return {
    title: `Revoke the token of ${name}?`,
    text: `Calls of ${name} are refused within a second and its open streams are closed, until a new token is issued.`,
    submit: `Revoke the token of ${name}`,
    isDestructive: true,
    perform: (_values, key) => client.call('tokenRevoke', { params: { subscription: name }, key }),
    done: () => report(`Token of ${name} revoked`),
  }
}

export function grantDatabaseUser(store: Store, name: string): DialogSpec {
  return secretChange(store, name, {
    id: 'indexerGrant',
    title: `Database user for ${name}`,
    text: 'User and password for SQL are shown once, after this.',
    submit: 'Create database user',
    shown: `Database user of ${name}`,
  })
}

export function rotateDatabaseUser(store: Store, name: string): DialogSpec {
  return secretChange(store, name, {
    id: 'indexerRotate',
    title: `Replace the database password of ${name}?`,
    text: 'The user name stays. The old password stops working.',
    submit: 'Replace password',
    isDestructive: true,
    shown: `New database password of ${name}`,
  })
}

export function revokeDatabaseUser({ client, report }: Store, name: string): DialogSpec {
  return {
    title: `Revoke the database user of ${name}?`,
    text: `${name} cannot run queries any more.`,
    submit: `Revoke the database user of ${name}`,
    isDestructive: true,
    perform: (_values, key) => client.call('indexerRevoke', { params: { subscription: name }, key }),
    done: () => report(`Database user of ${name} revoked`),
  }
}
