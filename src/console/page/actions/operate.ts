import { ADMIN_ROLES } from '../../../contract/admin-routes.ts'
import type { ConnectionRecord, SecretRecord } from '../../client/wire.ts'
import type { Store } from '../store.ts'
import type { DialogSpec } from '../ui/dialog-spec.ts'

export function closeConnection({ client, report }: Store, connection: ConnectionRecord): DialogSpec {
  const whose = connection.subscription ?? connection.subscription_id
  return {
    title: `Close a connection of ${whose}?`,
    text: `The ${connection.interface} connection from ${connection.remote_address} is closed. The client may connect again.`,
    submit: `Close the connection of ${whose}`,
    isDestructive: true,
    perform: (_values, key) => client.call('connectionClose', { params: { connection: connection.id }, key }),
    done: () => report(`Connection of ${whose} closed`),
  }
}

export function drainNode({ client, report }: Store, node: string): DialogSpec {
  return {
    title: `Drain ${node}?`,
    text: `${node} gets no new requests until it is used again. What is in flight finishes.`,
    submit: `Drain ${node}`,
    isDestructive: true,
    perform: (_values, key) => client.call('upstreamDrain', { params: { node }, key }),
    done: () => report(`${node} is drained`),
  }
}

export function undrainNode({ client, report }: Store, node: string): DialogSpec {
  return {
    title: `Use ${node} again`,
    submit: `Use ${node}`,
    perform: (_values, key) => client.call('upstreamUndrain', { params: { node }, key }),
    done: () => report(`${node} is in use again`),
  }
}

export function addDedicatedNode({ client, report }: Store): DialogSpec {
  return {
    title: 'Add dedicated node',
    fields: [
      { name: 'name', label: 'Name', isRequired: true },
      { name: 'rpc', label: 'RPC address', isRequired: true, placeholder: 'https://node.example:8899' },
      { name: 'ws', label: 'WebSocket address' },
      { name: 'grpc', label: 'gRPC address' },
      { name: 'credential', label: 'Credential', hint: 'A reference: file:PATH or env:NAME. Never the secret itself.' },
    ],
    submit: 'Add node',
    perform: (values, key) => {
      const given = Object.entries(values).map(([name, value]) => [name, value.trim()] as const)
      return client.call('nodeAdd', { body: Object.fromEntries(given.filter(([, value]) => value !== '')), key })
    },
    done: (_value, { name }) => report(`Node ${name} added; assign it to a subscription`),
  }
}

export function assignNode({ client, report }: Store, node: string, present: string | null): DialogSpec {
  return {
    title: `Assign ${node}`,
    fields: [
      { name: 'subscription', label: 'Subscription', value: present ?? '', hint: 'Empty: the node is not assigned.' },
    ],
    submit: 'Assign',
    perform: ({ subscription = '' }, key) => {
      const name = subscription.trim()
      return client.call('nodeAssign', { params: { node }, body: { subscription: name === '' ? null : name }, key })
    },
    done: (_value, { subscription }) =>
      report(subscription ? `${node} is assigned to ${subscription}` : `${node} is not assigned`),
  }
}

export function removeNode({ client, report }: Store, node: string): DialogSpec {
  return {
    title: `Remove ${node}?`,
    text: `The dedicated node ${node} is removed from Sluice.`,
    submit: `Remove ${node}`,
    isDestructive: true,
    perform: (_values, key) => client.call('nodeRemove', { params: { node }, key }),
    done: () => report(`Node ${node} removed`),
  }
}

export function setDestination({ client, report }: Store, name: string): DialogSpec {
  return {
    title: `Shred destination of ${name}`,
    fields: [
      { name: 'address', label: 'IP address and port', isRequired: true, placeholder: '203.0.113.7:20000' },
      {
        name: 'vouched',
        kind: 'check',
        label: 'I vouch for this address',
        hint: 'Otherwise nothing is sent until the address has echoed its challenge.',
      },
    ],
    submit: 'Set destination',
    perform: ({ address = '', vouched }, key) =>
      client.call('destinationSet', {
        params: { subscription: name },
        body: { address: address.trim(), ...(vouched === 'yes' ? { vouched: true } : {}) },
        key,
      }),
    done: () => report(`Destination of ${name} set`),
  }
}

export function pauseDestination({ client, report }: Store, name: string, isPaused: boolean): DialogSpec {
  return {
    title: isPaused ? `Resume shreds to ${name}` : `Pause shreds to ${name}?`,
    ...(isPaused ? {} : { text: `No shreds are sent to ${name} until they are resumed. The destination is kept.` }),
    submit: isPaused ? 'Resume' : `Pause ${name}`,
    isDestructive: !isPaused,
    perform: (_values, key) =>
      client.call(isPaused ? 'destinationResume' : 'destinationPause', { params: { subscription: name }, key }),
    done: () => report(isPaused ? `Shreds to ${name} resumed` : `Shreds to ${name} paused`),
  }
}

export function addAdmin({ client, report, secret }: Store): DialogSpec {
  return {
    title: 'Add administrator',
    text: 'The token is shown once, after this.',
    fields: [
      { name: 'name', label: 'Name', isRequired: true },
      {
        name: 'role',
        label: 'Role',
        kind: 'select',
        value: 'support',
        options: ADMIN_ROLES.map((role) => ({ value: role, label: role })),
      },
      { name: 'expires', label: 'Expires after', placeholder: '90d', hint: 'Empty: no end.' },
    ],
    submit: 'Add administrator',
    perform: ({ name = '', role = '', expires = '' }, key) =>
      client.call('adminAdd', {
        body: { name: name.trim(), role, ...(expires.trim() === '' ? {} : { expires: expires.trim() }) },
        key,
      }),
    done: (value, { name }) => {
      secret.value = { title: `Administrator ${name} is added`, secret: value as SecretRecord }
      report(`Administrator ${name} added`)
    },
  }
}

export function rotateAdmin({ client, report, secret }: Store, name: string): DialogSpec {
  return {
    title: `Replace the token of ${name}?`,
    text: `The old token stops working and the sessions of ${name} end.`,
    submit: 'Replace token',
    isDestructive: true,
    perform: (_values, key) => client.call('adminRotate', { params: { admin: name }, key }),
    done: (value) => {
      secret.value = { title: `New token of ${name}`, secret: value as SecretRecord }
      report(`Token of ${name} replaced`)
    },
  }
}

export function removeAdmin({ client, report }: Store, name: string): DialogSpec {
  return {
    title: `Remove administrator ${name}?`,
    text: `The token of ${name} stops working and the sessions of ${name} end.`,
    submit: `Remove ${name}`,
    isDestructive: true,
    perform: (_values, key) => client.call('adminRemove', { params: { admin: name }, key }),
    done: () => report(`Administrator ${name} removed`),
  }
}
