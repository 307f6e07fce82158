"use strict";(()=>{var t=(()=>{try{return localStorage.getItem("godwit.theme")}catch{return null}})();(t==="dark"||t==="light")&&(document.documentElement.dataset.theme=t);})();
