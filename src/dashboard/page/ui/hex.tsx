import { cleanName, isAddress, shortHex, shortSlot } from '../../../ui/safe-text.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'

/** A contract, by its label where it has one; a click opens it. */
export function Contract({ address }: { address: string }) {
  const { labels } = useStore()
  const label = labels.all.value.get(address)
  const text = label ?? shortHex(address)
  if (!isAddress(address)) return <span class="hex">{text}</span>
  return (
    <button
      type="button"
      class={label === undefined ? 'link hex' : 'link name'}
      title={address}
      onClick={() => goTo({ view: 'contract', address })}
    >
      <bdi>{text}</bdi>
    </button>
  )
}

export function Slot({ slot }: { slot: string }) {
  return (
    <span class="hex" title={cleanName(slot)}>
      {shortSlot(slot)}
    </span>
  )
}

export function BlockLink({ number }: { number: number }) {
  return (
    <button type="button" class="link number" onClick={() => goTo({ view: 'block', number })}>
      {String(number)}
    </button>
  )
}
