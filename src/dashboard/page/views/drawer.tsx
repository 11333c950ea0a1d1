import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { goTo } from '../follow-hash.ts'

/** A side panel over the live page. Escape and the close button close it; focus returns to the previous element. */
export function Drawer({ title, children }: { title: ComponentChildren; children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    const before = document.activeElement
    heading.current?.focus()
    const close = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && !event.defaultPrevented) goTo({ view: 'live' })
    }
    addEventListener('keydown', close)
    return () => {
      removeEventListener('keydown', close)
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <aside class="drawer" aria-labelledby="drawer-title">
      <header>
        <h2 id="drawer-title" ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <CopyLink />
        <button type="button" class="close" aria-label="Close" onClick={() => goTo({ view: 'live' })}>
          ✕
        </button>
      </header>
      <div class="drawer-body">{children}</div>
    </aside>
  )
}

function CopyLink() {
  const copied = useSignal(false)
  return (
    <button
      type="button"
      class="quiet-button"
      onClick={() => {
        void navigator.clipboard?.writeText(location.href).then(() => {
          copied.value = true
        })
      }}
    >
      {copied.value ? 'Link copied' : 'Copy link'}
    </button>
  )
}
