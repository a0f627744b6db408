// Opens a connect link from any page: GatewayConnect.open(url) in a popup, GatewayConnect.open(url, {frame: element})
// in a frame. Resolves to {status: "completed", connector_id}, {status: "failed"}, or {status: "closed"}.
"use strict";
window.GatewayConnect = {
  open(url, { frame = null } = {}) {
    const origin = new URL(url, location.href).origin;
    let target, shown;
    if (frame) {
      shown = document.createElement("iframe");
      shown.src = url;
      shown.title = "Connect an application";
      shown.style.cssText = "border:0;width:100%;height:100%;min-height:32rem";
      frame.replaceChildren(shown);
      target = () => shown.contentWindow;
    } else {
      const left = Math.max(0, (screen.width - 520) / 2), top = Math.max(0, (screen.height - 720) / 2);
      shown = window.open(url, "gateway-connect", `popup,width=520,height=720,left=${left},top=${top}`);
      if (!shown) return Promise.resolve({ status: "blocked" });
      target = () => shown;
    }
    return new Promise((resolve) => {
      const end = (result) => {
        window.removeEventListener("message", onMessage);
        clearInterval(watch);
        resolve(result);
      };
      const onMessage = (event) => {
        if (event.origin !== origin || event.source !== target() || event.data?.type !== "gateway.connect") return;
        const { status, connector_id } = event.data;
        end({ status, connector_id });
        if (!frame && status === "completed") shown.close();
      };
      window.addEventListener("message", onMessage);
      const watch = setInterval(() => {
        if (frame ? !shown.isConnected : shown.closed) end({ status: "closed" });
      }, 500);
    });
  },
};
