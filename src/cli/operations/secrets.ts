import { lookUp } from '../../access/provisioning/context.ts'
import { grantIndexer, revokeIndexer } from '../../access/provisioning/indexer-credentials.ts'
import { issueToken, revokeTokens, rotateToken } from '../../access/provisioning/tokens.ts'
import type { Subscription, Token } from '../../access/store/model.ts'
import type { RemoteApi } from '../remote/api.ts'
import type { Group } from './open.ts'

type Named = Pick<Subscription, 'id' | 'name'>
type EndedToken = Pick<Token, 'id' | 'last4' | 'state' | 'notAfter'>

/** A new token; after a dry run only its subscription. */
export type NewToken = {
  readonly subscription: Named
  readonly tokenId: string | undefined
  readonly last4: string | undefined
  readonly secret: string | undefined
}

export type NewDatabaseUser = {
  readonly subscription: Named
  readonly username: string | undefined
  readonly password: string | undefined
}

export type ListedToken = Omit<Token, 'revision' | 'sha256'> & {
  readonly subscription: string
  readonly lastUsedAt: number | null
}

/** Tokens and database users: the secrets of a subscription. */
export type SecretOperations = {
  find(subscription: string): Promise<Named>
  issue(subscription: string): Promise<NewToken>
  rotate(input: {
    subscription: string
    grace: string | undefined
    graceMs: number
  }): Promise<NewToken & { readonly ended: readonly EndedToken[] }>
  revoke(subscription: string): Promise<readonly Pick<Token, 'id' | 'last4'>[]>
  list(subscription: string | undefined): Promise<readonly ListedToken[]>
  grant(input: { subscription: string; rotate: boolean }): Promise<NewDatabaseUser>
  /** The names of the revoked users. */
  revokeUsers(subscription: string): Promise<readonly string[]>
}

export const secrets: Group<SecretOperations> = {
  local(session, flags) {
    const { store } = session
    const on = session.provisioning(flags)
    const issued = ({ secret, record, subscription }: Awaited<ReturnType<typeof issueToken>>): NewToken => ({
      subscription,
      tokenId: record.id,
      last4: record.last4,
      secret,
    })
    return {
      find: (subscription) => lookUp(store, 'subscriptions', subscription),
      issue: async (subscription) => issued(await issueToken(on, { subscription })),
      async rotate({ subscription, graceMs }) {
        const rotated = await rotateToken(on, { subscription, graceMs })
        return { ...issued(rotated), ended: rotated.ended }
      },
      revoke: async (subscription) => (await revokeTokens(on, { subscription })).ended,
      async list(subscription) {
        const only = subscription === undefined ? undefined : await lookUp(store, 'subscriptions', subscription)
        const tokens =
          only === undefined ? await store.list('tokens') : await store.find('tokens', { subscriptionId: only.id })
        const names = new Map((await store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
        const rows: ListedToken[] = []
        for (const token of tokens)
          rows.push({
            ...token,
            subscription: names.get(token.subscriptionId) ?? token.subscriptionId,
            lastUsedAt: (await store.lastUsed(token.id)) ?? null,
          })
        return rows
      },
      async grant(input) {
        const { record, password, subscription } = await grantIndexer(on, input)
        return { subscription, username: record.username, password }
      },
      revokeUsers: async (subscription) =>
        (await revokeIndexer(on, { subscription })).ended.map(({ username }) => username),
    }
  },

  remote(api) {
    const at = (subscription: string) => ({ params: { subscription } })
    return {
      find: (subscription) => api.call<Named>('subShow', at(subscription)),
      issue: async (subscription) => newToken(await api.call<WireToken>('tokenIssue', at(subscription))),
      async rotate({ subscription, grace }) {
        const body = { grace }
        const rotated = await api.call<WireToken & { ended: EndedToken[] }>('tokenRotate', {
          ...at(subscription),
          body,
        })
        return { ...newToken(rotated), ended: rotated.ended }
      },
      revoke: async (subscription) => revoked(api, 'tokenRevoke', subscription),
      async list(subscription) {
        const rows = await api.list<Omit<ListedToken, 'subscription'> & { subscription: string | null }>('tokenList', {
          query: { subscription },
        })
        return rows.map((row) => ({ ...row, subscription: row.subscription ?? row.subscriptionId }))
      },
      async grant({ subscription, rotate }) {
        const user = await api.call<Omit<NewDatabaseUser, 'subscription'> & Of>(
          rotate ? 'indexerRotate' : 'indexerGrant',
          at(subscription),
        )
        return { ...user, subscription: { id: user.subscriptionId, name: user.subscription } }
      },
      revokeUsers: async (subscription) => revoked(api, 'indexerRevoke', subscription),
    }
  },
}

/** The subscription that a response is about. */
type Of = { readonly subscription: string; readonly subscriptionId: string }
type WireToken = Of & { readonly tokenId?: string; readonly last4?: string; readonly token?: string }

function newToken({ subscription, subscriptionId, tokenId, last4, token }: WireToken): NewToken {
  return { subscription: { id: subscriptionId, name: subscription }, tokenId, last4, secret: token }
}

async function revoked<Item>(
  api: RemoteApi,
  id: 'tokenRevoke' | 'indexerRevoke',
  subscription: string,
): Promise<Item[]> {
  return (await api.call<{ revoked: Item[] }>(id, { params: { subscription } })).revoked
}
