// What the pages need beyond htmx: when live updates wait, keys, charts, and the theme. Everything else works without.
(() => {
  'use strict';
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];

  // The page that a link opens has the key of the session. Every form that acts carries it: a browser sends cookies to
  // each port of a host, but keeps this storage for one.
  const arrived = $('#signed-in');
  if (arrived) { localStorage.setItem('session-key', arrived.dataset.key); location.replace('/'); return; }
  addEventListener('submit', (event) => {
    const form = event.target, by = event.submitter;
    if ((by?.hasAttribute('formmethod') ? by.formMethod : form.method) !== 'post' || $('[name=session-key]', form)) return;
    const field = document.createElement('input');
    field.type = 'hidden'; field.name = 'session-key'; field.value = localStorage.getItem('session-key') || '';
    form.append(field);
  }, true);

  // Theme: the system's until somebody chooses.
  const stored = localStorage.getItem('theme');
  if (stored) document.documentElement.dataset.theme = stored;
  const dark = () => (document.documentElement.dataset.theme ||
    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

  // Live updates wait while somebody is busy: a menu, a form or a dialog is open, a field has the focus or another value
  // than it came with, rows are chosen, or text is selected. The newest one is shown as soon as nobody is busy. In a
  // hidden tab the stream is closed.
  let held = false, waiting = null;
  const edited = (field) => field.matches('[type=checkbox], [type=radio]') ? field.checked !== field.defaultChecked
    : field.matches('select') ? field.selectedOptions[0] !== (field.querySelector('[selected]') || field.options[0])
    : field.value !== field.defaultValue;
  const busy = () => held || $('dialog[open]') || $('#live details.popup[open]') ||
    $$('#main input, #main textarea, #main select').some((field) => edited(field) || field === document.activeElement) ||
    (getSelection().toString() !== '' && $('#main')?.contains(getSelection().anchorNode));
  // Rows of a list that is not at its top wait behind a button; a page without new rows changes in its place.
  const newRows = (text) => !$('[data-list]') || scrollY < 240 ? 0 :
    $$('[data-list] tbody tr[id]', new DOMParser().parseFromString(text, 'text/html'))
      .filter((row) => !document.getElementById(row.id)).length;
  function waits(text) {
    if (busy()) return true;
    const rows = newRows(text);
    if (rows > 0) offer(rows); else $('#waiting')?.remove();
    return rows > 0;
  }
  // An error while an update is put into the page is one of a script: the page stops following changes. Other errors are
  // those of the connection. In both cases the stream is closed, since a browser has few connections for all tabs.
  let updating = false, broken = false;
  document.addEventListener('htmx:sse:before:message', (event) => {
    $('#lost')?.remove();
    waiting = null;
    if (waits(event.detail.message.data)) { event.preventDefault(); waiting = event.detail.message.data; return; }
    updating = true;
  });
  document.addEventListener('htmx:sse:after:message', () => { updating = false; });
  async function catchUp() {
    if (waiting === null || broken || waits(waiting)) return;
    const live = $('#live'), text = waiting;
    waiting = null;
    try {
      await htmx.swap({ text, sourceElement: live, target: live, swap: 'innerMorph' });
    } catch (error) { breaks(error); }
  }
  setInterval(catchUp, 500);
  document.addEventListener('htmx:sse:error', (event) => {
    event.detail?.connection?.abortController?.abort();
    if (updating) breaks(event.detail.error); else lost(event.detail?.status);
  });
  document.addEventListener('htmx:sse:before:connection', (event) => { if (broken) event.preventDefault(); });
  document.addEventListener('htmx:sse:close', (event) => { if (event.detail?.reason !== 'removed' && !broken) lost(); });
  function breaks(error) {
    updating = false; broken = true;
    $('#live')._htmx?.sse?.abortController?.abort();
    console.error(error);
    tell('This page cannot show changes any more, because of an error in a script. Load it again.');
  }
  function lost(status) {
    tell(status === 401 || status === 403 ? 'You are signed out. Type "tendril open" and follow the link.'
      : 'The connection to tendril is lost. Trying again…');
  }
  function tell(text) {
    const bar = $('#lost') || document.createElement('div');
    bar.id = 'lost'; bar.role = 'status'; bar.textContent = text;
    document.body.append(bar);
  }
  function offer(rows) {
    const button = $('#waiting') || document.createElement('button');
    button.id = 'waiting'; button.className = 'primary'; button.textContent = rows + ' new';
    button.onclick = () => { scrollTo(0, 0); catchUp(); };
    document.body.append(button);
  }
  addEventListener('scroll', catchUp, { passive: true });
  // What a person opened or closed stays so.
  htmx.registerExtension('opened', { htmx_before_morph_attr: (element, { attrName }) => attrName !== 'open' || !element.matches('details') });

  // After each update: what the server does not know is put back.
  const restore = () => {
    const theme = $('#theme'), hold = $('#hold');
    $$('#main [data-copy], #main [data-all]').forEach((button) => { button.hidden = false; });
    if (theme) { theme.hidden = false; theme.textContent = dark() ? 'Light' : 'Dark'; theme.title = 'Change the colours'; }
    if (hold) { hold.hidden = false; hold.textContent = held ? '○ Not live' : '● Live'; hold.title = held ? 'Follow changes again' : 'Stop following changes'; hold.setAttribute('aria-pressed', held); }
  };
  document.addEventListener('htmx:after:swap', restore);
  document.addEventListener('htmx:sse:after:message', restore);

  document.addEventListener('click', (event) => {
    const target = event.target.closest('button, a, summary');
    if (target?.id === 'theme') {
      document.documentElement.dataset.theme = dark() ? 'light' : 'dark';
      localStorage.setItem('theme', document.documentElement.dataset.theme);
      restore(); charts.forEach((c) => c.draw());
    } else if (target?.id === 'hold') { held = !held; restore(); catchUp(); }
    else if (target?.dataset.copy !== undefined) { copy(target); }
    else if (target?.dataset.range) { chooseRange(target.dataset.range); }
    else if (target?.dataset.all) { // chooses all rows of a table
      $$('input[type=checkbox][name="' + target.dataset.all + '"]').forEach((box) => { box.checked = true; });
    }
    // A click elsewhere closes an open menu.
    $$('details.popup[open]').forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
  });

  // What only a script can do is hidden without one: copying, and choosing all rows.
  function copy(button) {
    navigator.clipboard?.writeText($('pre', button.parentElement).textContent).then(() => {
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    }, () => { button.textContent = 'Select the text'; });
  }

  // Keys: / search, g and a letter go to a screen, ? lists them, Escape closes.
  let going = 0;
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { $$('details.popup[open]').forEach((menu) => { menu.open = false; $('summary', menu).focus(); }); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches?.('input, textarea, select')) return;
    if (Date.now() - going < 1500) {
      going = 0;
      const link = $('.side a[data-key="' + CSS.escape(event.key) + '"]');
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === 'g') going = Date.now();
    else if (event.key === '/') { const field = $('#main input[type=search]'); if (field) { event.preventDefault(); field.focus(); } }
    else if (event.key === '?') keys();
  });
  function keys() {
    if ($('dialog[open]')) { $('dialog[open]').close(); return; }
    const dialog = document.createElement('dialog');
    const title = document.createElement('h2'); title.textContent = 'Keys'; dialog.append(title);
    const line = (key, text) => {
      const p = document.createElement('p'), kbd = document.createElement('kbd');
      kbd.textContent = key; p.append(kbd, ' ' + text); dialog.append(p);
    };
    line('/', 'search');
    $$('.side a[data-key]').forEach((a) => line('g ' + a.dataset.key, a.firstChild.textContent.trim()));
    line('?', 'this list'); line('Esc', 'close');
    dialog.addEventListener('close', () => dialog.remove());
    document.body.append(dialog); dialog.showModal();
  }

  // Charts.
  const charts = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  const paints = ['accent', 'info', 'warning'];
  class Chart {
    constructor(figure) {
      this.figure = figure; this.box = $('.plot', figure);
      this.keys = figure.dataset.chart.split(' '); this.labels = figure.dataset.labels.split(','); this.unit = figure.dataset.unit || '';
    }
    update(answer) { this.answer = answer; this.draw(); }
    draw() {
      if (!this.answer) return;
      const { at, series, marks } = this.answer;
      const data = [at, ...this.keys.map((key) => series[key] || at.map(() => null))];
      const any = data.slice(1).some((values) => values.some((value) => value !== null));
      this.plot?.destroy(); this.plot = null; this.box.classList.toggle('none', !any);
      if (!any) return;
      const clock = (at, seconds) => new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit',
        second: seconds ? '2-digit' : undefined, hour12: false });
      const axis = { stroke: colour('muted'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false }, font: '12px system-ui' };
      const unit = this.unit, show = (u, v) => v === null || v === undefined ? '–' : (v >= 100 ? v.toFixed(0) : +v.toFixed(2)) + unit;
      this.plot = new uPlot({
        width: this.box.clientWidth, height: 160, cursor: { y: false }, legend: { live: true },
        scales: { y: { range: (u, min, max) => [0, Math.max(max * 1.1, 1)] } },
        axes: [{ ...axis, size: 28, values: (u, all) => all.map((at) => clock(at, false)) }, { ...axis, size: 48, values: (u, all) => all.map((v) => v >= 10000 ? v / 1000 + "k" : v) }],
        series: [{ label: '', value: (u, at) => at === null ? '' : clock(at, true) }, ...this.labels.map((label, i) => ({ label, value: show, width: 1.5,
          stroke: colour(paints[i]), fill: i === 0 && this.labels.length < 3 ? colour('wash') : undefined, points: { show: false } }))],
        hooks: { draw: [(u) => {
          u.ctx.save(); u.ctx.strokeStyle = colour('muted'); u.ctx.setLineDash([3, 3]);
          for (const mark of marks || []) {
            const x = u.valToPos(mark.at, 'x', true);
            if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
            u.ctx.beginPath(); u.ctx.moveTo(x, u.bbox.top); u.ctx.lineTo(x, u.bbox.top + u.bbox.height); u.ctx.stroke();
          }
          u.ctx.restore();
        }] },
      }, data, this.box);
    }
  }
  let range = '15m';
  function chooseRange(chosen) {
    range = chosen;
    $$('[data-range]').forEach((b) => b.setAttribute('aria-pressed', b.dataset.range === range));
    loadCharts();
  }
  async function loadCharts() {
    if (document.hidden || held || !charts.length) return;
    try {
      const response = await fetch('/api/v1/series?range=' + range);
      if (!response.ok) return;
      const answer = await response.json();
      charts.forEach((chart) => chart.update(answer));
    } catch { /* the bar at the bottom tells it */ }
  }

  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', start); else start();
  function start() {
    restore();
    $$('[data-chart]').forEach((figure) => charts.push(new Chart(figure)));
    loadCharts();
    setInterval(loadCharts, 5000);
    let resizing = 0;
    addEventListener('resize', () => { clearTimeout(resizing); resizing = setTimeout(() => charts.forEach((c) => c.draw()), 150); });
  }
})();
